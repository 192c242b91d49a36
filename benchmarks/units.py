"""How much sooner are laws found where the units of their columns are known?

    python benchmarks/units.py --out benchmarks/results/units.json [--set NAME] [--seconds 10] [--seed 1]

The file keeps what it has of other sets and seeds.

Every law is searched for with and without `units`, one run after the other with the same data and seed, on
one core. Seconds are those that the processor spends, which hardly depend on what else the machine does. A
law counts as found when the search ends with an exact fit that is exact on the test rows, too; a run that
does not find it counts with all its seconds. The sets are

- ``feynman``: the twenty laws of SRBench that a run without units found, of another seed, and not sooner than
  after 3 seconds,
- ``textbooks``: the laws of the set `laws` that have at least three columns with a dimension and are
  consistent, but for those about money, whose unit pint does not know,
- ``development``: laws of SRBench that took that run more than a second or that it did not find, on which the
  treatment of inconsistent programs was chosen.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from dgsr import DGSRRegressor
from dgsr.benchmarking.environment import environment
from dgsr.estimator.parameters import grouped
from dgsr.problems import load_problem

# Largest NMSE on the test rows of a law that was found.
_EXACT = 1e-12

# The unit of the target and those of the columns, in their order; a blank one has no dimension.
SETS: dict[str, dict[str, tuple[str, list[str]]]] = {
    "feynman": {
        "feynman_III_10_19": ("J", ["J/T", "T", "T", "T"]),
        "feynman_III_4_32": ("", ["J s", "1/s", "J/K", "K"]),
        "feynman_III_8_54": ("", ["J", "s", "J s"]),
        "feynman_II_11_27": ("C/m^2", ["1/m^3", "m^3", "F/m", "V/m"]),
        "feynman_II_13_34": ("A/m^2", ["C/m^3", "m/s", "m/s"]),
        "feynman_II_35_21": ("A/m", ["1/m^3", "A m^2", "T", "J/K", "K"]),
        "feynman_II_36_38": ("", ["J/T", "T", "J/K", "K", "", "F/m", "m/s", "A/m"]),
        "feynman_II_6_15a": ("V/m", ["F/m", "C m", "m", "m", "m", "m"]),
        "feynman_I_15_10": ("kg m/s", ["kg", "m/s", "m/s"]),
        "feynman_I_30_3": ("W/m^2", ["W/m^2", "", ""]),
        "feynman_I_30_5": ("", ["m", "m", ""]),
        "feynman_I_32_17": ("W", ["F/m", "m/s", "V/m", "m", "1/s", "1/s"]),
        "feynman_I_34_14": ("1/s", ["m/s", "m/s", "1/s"]),
        "feynman_I_37_4": ("W/m^2", ["W/m^2", "W/m^2", ""]),
        "feynman_I_48_2": ("J", ["kg", "m/s", "m/s"]),
        "feynman_I_50_26": ("m", ["m", "1/s", "s", ""]),
        "feynman_test_19": ("Pa", ["m^3/kg/s^2", "", "m", "1/s", "", "m/s"]),
        "feynman_test_4": ("m/s", ["kg", "J", "J", "kg m^2/s", "m"]),
        "feynman_test_8": ("J", ["J", "kg", "m/s", ""]),
        "feynman_test_9": ("W", ["m^3/kg/s^2", "m/s", "kg", "kg", "m"]),
    },
    "textbooks": {
        "law_heat": ("J", ["J/(g K)", "g", "degC", "degC"]),
        "law_gas_density": ("g/L", ["g", "atm", "mol", "K"]),
        "law_capillary_rise": ("m", ["N/m", "rad", "m", "kg/m^3"]),
        "law_reaction_rate": ("mol/(L h)", ["mol/L", "mol/L", "h", "h"]),
        "law_enthalpy": ("kJ", ["kJ", "kPa", "m^3"]),
        "law_effusion": ("mL/s", ["mL/s", "g/mol", "g/mol"]),
        "law_vapor_pressure": ("kPa", ["kPa", "J/mol", "K"]),
        "law_handling_time": ("s", ["s", "1/s", "", "s"]),
        "law_inferior_competitors_sites": ("", ["", "1/yr", "1/yr", "1/yr"]),
        "law_functional_response": ("1/d", ["m^2/d", "1/m^2", "d"]),
        "law_susceptibles_in_an_open_epidemic": ("1/yr", ["1/yr", "", "", "", "1/yr", "1/yr"]),
        "law_metabolic_rate": ("W", ["W/kg^0.75", "kg", "eV", "K"]),
        "law_compressed_volume": ("m^3/kg", ["m^3/kg", "MPa", "MPa", "MPa"]),
        "law_center_of_pressure": ("m", ["m", "m^4", "m^2"]),
        "law_energy_per_weight": ("m", ["m", "kPa", "kN/m^3", "", "m/s"]),
        "law_darcy_weisbach": ("m", ["", "m", "m", "m^3/s"]),
        "law_horton_infiltration": ("mm/h", ["mm/h", "mm/h", "1/h", "h"]),
        "law_streeter_phelps": ("mg/L", ["1/d", "mg/L", "1/d", "d", "mg/L"]),
        "law_thiem": ("m^2/d", ["m^3/d", "m", "m", "m", "m"]),
        "law_combined_gas_law": ("kPa", ["kPa", "m^3", "K", "K", "m^3"]),
        "law_manning": ("m^3/s", ["m^2", "s/m^(1/3)", "m", ""]),
        "law_pump_head": ("m", ["m", "kPa", "kN/m^3", "m/s", "m", "kPa", "m/s", "m"]),
    },
    "development": {
        "feynman_III_4_33": ("J", ["J s", "1/s", "J/K", "K"]),
        "feynman_II_35_18": ("1/m^3", ["1/m^3", "J/K", "K", "J/T", "T"]),
        "feynman_I_15_3t": ("s", ["m", "m/s", "m/s", "s"]),
        "feynman_I_15_3x": ("m", ["m", "m/s", "m/s", "s"]),
        "feynman_I_16_6": ("m/s", ["m/s", "m/s", "m/s"]),
        "feynman_I_29_16": ("m", ["m", "m", "", ""]),
        "feynman_I_41_16": ("J/m^2", ["1/s", "K", "J s", "J/K", "m/s"]),
        "feynman_test_13": ("V", ["C", "m", "m", "", "F/m"]),
        "feynman_test_15": ("1/s", ["m/s", "m/s", "1/s", ""]),
        "feynman_test_18": ("kg/m^3", ["m^3/kg/s^2", "", "m", "1/s", "m/s"]),
        "feynman_I_18_4": ("m", ["kg", "kg", "m", "m"]),
        "feynman_II_6_15b": ("V/m", ["F/m", "C m", "", "m"]),
        "feynman_test_17": ("J", ["kg", "1/s", "kg m/s", "m", "m", ""]),
    },
}


def units_of(name: str, known: tuple[str, list[str]]) -> dict[str, Any]:
    """Return the parameters of the units of a law."""
    target, columns = known
    assert len(columns) == load_problem(name).n_variables
    return {"units": {f"x{i + 1}": unit for i, unit in enumerate(columns)}, "y_units": target}


def run(name: str, parameters: dict[str, Any], seconds: float, seed: int) -> dict[str, Any]:
    """Search for a law, and return whether it was found and how long that took."""
    data = load_problem(name).sample(seed)
    rows = slice(200)
    began = last = time.process_time()

    def is_over(_: Any) -> bool:
        nonlocal last
        last = time.process_time()
        return last - began > seconds

    limits = {"max_evaluations": 10**9, "random_state": seed, "callback": is_over}
    model = DGSRRegressor(**grouped(limits | parameters))
    model.fit(data.X_train[rows], data.y_train[rows])
    error = float(np.mean((model.predict(data.X_test) - data.y_test) ** 2) / np.var(data.y_test))
    found = model.stop_reason_ == "exact fit" and error < _EXACT
    return {
        "found": found,
        "seconds": last - began if found else seconds,
        "evaluations": model.n_evaluations_,
        "formula": str(model.expression_),
        "test_nmse": error if np.isfinite(error) else None,
    }


def compare(set_name: str, seconds: float, seed: int) -> list[dict[str, Any]]:
    """Search for every law of a set without and with units, in turns, and print each pair."""
    rows = []
    for i, (name, known) in enumerate(SETS[set_name].items()):
        arms = {"without": {}, "with": units_of(name, known)}
        order = list(arms) if i % 2 == 0 else list(arms)[::-1]
        found = {arm: run(name, arms[arm], seconds, seed) for arm in order}
        rows.append({"problem": name, "y_units": known[0], "units": known[1], **{a: found[a] for a in arms}})
        each = "  ".join(f"{a}: {shown(found[a])}" for a in arms)
        print(f"{name:40} {each}  load {os.getloadavg()[0]:.1f}", flush=True)
    return rows


def shown(one: dict[str, Any]) -> str:
    return f"{one['seconds']:6.2f} s" if one["found"] else "    not"


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the laws found and the seconds over all runs, by arm."""
    arms = ("without", "with")
    return {
        "laws": len(rows),
        **{f"found_{arm}": sum(row[arm]["found"] for row in rows) for arm in arms},
        **{f"seconds_{arm}": round(sum(row[arm]["seconds"] for row in rows), 2) for arm in arms},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set", action="append", choices=SETS, dest="sets")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    result = json.loads(options.out.read_text(encoding="utf-8")) if options.out.exists() else {}
    # Compiles, and reads what every fit reads once.
    run("law_enthalpy", units_of("law_enthalpy", SETS["textbooks"]["law_enthalpy"]), 5.0, 0)
    for name in options.sets or ("feynman", "textbooks"):
        began = os.getloadavg()
        rows = compare(name, options.seconds, options.seed)
        result[f"{name}, seed {options.seed}"] = {
            "environment": environment(),
            "limit": options.seconds,
            "load": [began, os.getloadavg()],
            "summary": summary(rows),
            "laws": rows,
        }
        print(name, summary(rows), flush=True)
        options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
