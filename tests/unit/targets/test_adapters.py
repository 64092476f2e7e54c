"""Every EP of the catalogue keeps the adapter's contract."""

from modelwright.targets import catalogue
from modelwright.testing import EpAdapterSuite

CHIPS = {
    "qnn": ("htp_arch=v73", "soc=x-elite", "soc=999,htp_arch=81"),
    "cpu": ("isa=vnni",),
}

for ep in catalogue().eps:
    name = f"Test{ep.key.capitalize()}"
    globals()[name] = type(name, (EpAdapterSuite,), {"key": ep.key, "chips": CHIPS.get(ep.key, ())})
