"""Where the time of a model goes, operator by operator."""
