"""The examples of Airflow, Dagster and dbt in the documentation, each with the real program in an environment of its own."""

from __future__ import annotations

import os
import re
import subprocess
from datetime import date
from pathlib import Path

import pytest
from environments import python_with

from paimon_py import Catalog, Schema

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "howto" / "orchestrate.md").read_text()
DAY = "2026-03-05"


def example(begins: str, language: str = "python") -> str:
    """The only block of a language with some text in it."""
    (found,) = [code for code in re.findall(rf"```{language}\n(.*?)```", PAGE, re.S) if begins in code]
    return found


@pytest.fixture
def lake(tmp_path):
    catalog = Catalog.open(tmp_path / "lake")
    catalog.create_database("shop")
    columns = Schema({"day": "DATE NOT NULL", "id": "BIGINT NOT NULL", "total": "INT"})
    catalog.create_table("shop.sales", columns, partition_by=["day"])
    return catalog


def run(directory, *command, **environment):
    known = {**os.environ, "LAKE": str(directory / "lake"), **environment}
    done = subprocess.run(list(map(str, command)), cwd=directory, env=known, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def sales(lake):
    return sorted((str(row["day"]), row["id"], row["total"]) for row in lake.table("shop.sales").to_arrow().to_pylist())


MATERIALIZE_TWICE = f"""
import dagster as dg
import lake_assets as lake
for _ in range(2):
    done = dg.materialize([lake.sales, lake.totals_are_positive], partition_key="{DAY}")
    assert done.success and [check.passed for check in done.get_asset_check_evaluations()] == [True]
assert lake.defs.resolve_job_def("care").execute_in_process().success
"""


def test_dagster_makes_a_day_twice_and_has_it_once(lake, tmp_path):
    python = python_with(tmp_path / "env", [str(ROOT), "dagster==1.*"])
    (tmp_path / "lake_assets.py").write_text(example("import dagster"))
    run(tmp_path, python, "-c", MATERIALIZE_TWICE)
    assert sales(lake) == [(DAY, 1, 30), (DAY, 2, 12)]


def test_airflow_runs_a_day_twice_and_has_it_once(lake, tmp_path):
    packages = ["apache-airflow-core==3.*", "apache-airflow-task-sdk", "apache-airflow-providers-standard"]
    python = python_with(tmp_path / "env", [str(ROOT), *packages])
    (tmp_path / "dags").mkdir()
    (tmp_path / "dags" / "lake.py").write_text(example("airflow.sdk"))
    settings = {
        "AIRFLOW_HOME": str(tmp_path / "home"), "AIRFLOW__CORE__DAGS_FOLDER": str(tmp_path / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
    }  # fmt: skip
    run(tmp_path, python.parent / "airflow", "db", "migrate", **settings)
    for _ in range(2):
        run(tmp_path, python.parent / "airflow", "dags", "test", "lake", DAY, **settings)
    assert sales(lake) == [(DAY, 1, 30), (DAY, 2, 12)]


def test_dbt_makes_a_table_of_a_table(lake, tmp_path):
    python = python_with(tmp_path / "env", [str(ROOT), "dbt-core==1.8.*", "dbt-duckdb==1.8.*"])
    day = date.fromisoformat(DAY)
    lake.table("shop.sales").write_arrow([{"day": day, "id": 1, "total": 30}, {"day": day, "id": 2, "total": 12}])
    project = tmp_path / "project"
    (project / "models").mkdir(parents=True)
    (project / "dbt_project.yml").write_text("name: lake\nversion: '1.0.0'\nconfig-version: 2\nprofile: lake\n")
    profiles = example("# profiles.yml", "yaml").replace("s3://lake/warehouse", str(tmp_path / "lake"))
    (project / "profiles.yml").write_text(profiles)
    (project / "models" / "sources.yml").write_text(example("# models/sources.yml", "yaml"))
    (project / "models" / "totals.sql").write_text(example("-- models/totals.sql", "sql"))
    (project / "paimon_plugin.py").write_text(example("BasePlugin"))
    for _ in range(2):
        run(project, python.parent / "dbt", "run", "--profiles-dir", ".")
    assert [row["total"] for row in lake.table("shop.totals").to_arrow().to_pylist()] == [42]
