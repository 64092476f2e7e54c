"""The steps of a build: each turns input files and resolved parameters into new files."""
