"""What was found, about which files, in which circumstances, by which version of which function; kept and read back."""

from modelwright.evidence._environment import (
    Environment,
    EnvironmentProbe,
    Reading,
    busy_words,
    read_environment,
)
from modelwright.evidence._keep import (
    SHOWN,
    RecordLine,
    Wanted,
    find_record,
    keep_record,
    list_records,
    read_record,
    record_file,
    record_ids,
)
from modelwright.evidence._record import (
    Payloads,
    Record,
    RecordedData,
    RecordedModel,
    RecordedVerdict,
    RecordHead,
    make_record,
    now,
    parse_record,
    restored_answer,
)

__all__ = [
    "SHOWN",
    "Environment",
    "EnvironmentProbe",
    "Payloads",
    "Reading",
    "Record",
    "RecordHead",
    "RecordLine",
    "RecordedData",
    "RecordedModel",
    "RecordedVerdict",
    "Wanted",
    "busy_words",
    "find_record",
    "keep_record",
    "list_records",
    "make_record",
    "now",
    "parse_record",
    "read_environment",
    "read_record",
    "record_file",
    "record_ids",
    "restored_answer",
]
