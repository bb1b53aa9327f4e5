# SPDX-License-Identifier: MIT
"""Stores in PostgreSQL for the scenarios and the crash tests.

SLUICE_TEST_STORE=postgres lets each place have its store in a database of its
own, on a server that the first place starts. A test of stores in directories
is decorated with of_directory(WHY), and is skipped then.

Database reads it by libpq, with the tables as those of SQLite: columns that
SQLite computes, numbers instead of truth values, "?" for values.
"""

import atexit
import ctypes
import ctypes.util
import functools
import importlib.machinery
import importlib.util
import itertools
import os
import re
import signal
import sys
import threading

import tap

ON = os.environ.get("SLUICE_TEST_STORE") == "postgres"

# Of a scheduler that stands still, and of a worker; its shims stop its sessions
# at the end of the lease.
LEASE_MS = 1500
WORKER_LEASE_MS = 20000

OK = (1, 2)  # PGRES_COMMAND_OK, PGRES_TUPLES_OK
KINDS = {16: "t".__eq__, 20: int, 21: int, 23: int, 700: float, 701: float,
         1700: lambda text: float(text) if "." in text else int(text)}  # fmt: skip

# What SQLite calls differently.
FUNCTIONS = """
CREATE FUNCTION pg_temp.json_extract(data text, path text) RETURNS text
LANGUAGE sql IMMUTABLE AS $$
    SELECT data::json #>> string_to_array(ltrim(path, '$.'), '.')
$$
"""
VIEWS = """
SELECT format('CREATE TEMP VIEW %I AS SELECT %s%s FROM sluice.%I', relname,
    string_agg(CASE WHEN atttypid = 'bool'::regtype
        THEN format('%I::int AS %I', attname, attname)
        WHEN atttypid = 'bytea'::regtype
        THEN format('convert_from(%I, ''UTF8'') AS %I', attname, attname)
        ELSE quote_ident(attname) END, ', ' ORDER BY attnum),
    CASE relname WHEN 'task'
        THEN ', key >> 32 AS run, key & 4294967295 AS ix' ELSE '' END,
    relname)
FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid
WHERE relnamespace = 'sluice'::regnamespace AND relkind = 'r' AND attnum > 0
GROUP BY relname
"""


def of_directory(why):
    """Decorate a case that is about the files of a store in a directory."""

    def change(function):
        @functools.wraps(function)
        def skip():
            raise tap.Skip(f"a store in a directory: {why}")

        return skip if ON else function

    return change


class Error(Exception):
    """The server has refused a statement."""

    def __init__(self, state, text):
        super().__init__(text)
        self.state = state


@functools.cache
def _libpq():
    found = ctypes.CDLL(ctypes.util.find_library("pq") or "libpq.so.5")
    for name, result in (
        ("PQconnectdb", ctypes.c_void_p),
        ("PQexecParams", ctypes.c_void_p),
        ("PQgetvalue", ctypes.c_char_p),
        ("PQerrorMessage", ctypes.c_char_p),
        ("PQresultErrorField", ctypes.c_char_p),
        ("PQcmdTuples", ctypes.c_char_p),
    ):
        getattr(found, name).restype = result
    return found


class Connection:
    """A connection to a database."""

    def __init__(self, address):
        self.pq = _libpq()
        self.lock = threading.Lock()
        self.conn = ctypes.c_void_p(self.pq.PQconnectdb(address.encode()))
        if self.pq.PQstatus(self.conn) != 0:
            text = self.pq.PQerrorMessage(self.conn).decode()
            self.close()
            raise Error("08000", text)

    def _value(self, result, row, column):
        if self.pq.PQgetisnull(result, row, column):
            return None
        text = self.pq.PQgetvalue(result, row, column).decode()
        kind = KINDS.get(self.pq.PQftype(result, column))
        return kind(text) if kind else text

    def ask(self, sql, *values):
        """Run a statement: its rows, or how many rows it has changed."""
        given = [None if v is None else str(v).encode() for v in values]
        texts = (ctypes.c_char_p * max(1, len(given)))(*given)
        pq = self.pq
        with self.lock:
            result = ctypes.c_void_p(pq.PQexecParams(
                self.conn, sql.encode(), len(given), None, texts, None, None, 0
            ))
            try:
                status = pq.PQresultStatus(result)
                if status not in OK:
                    state = pq.PQresultErrorField(result, ord("C")) or b"08000"
                    text = pq.PQerrorMessage(self.conn).decode()
                    raise Error(state.decode(), f"{sql}: {text}")
                if status == OK[0]:
                    return int(pq.PQcmdTuples(result) or 0)
                columns = range(pq.PQnfields(result))
                return [
                    tuple(self._value(result, row, column) for column in columns)
                    for row in range(pq.PQntuples(result))
                ]
            finally:
                pq.PQclear(result)

    def close(self):
        """End it."""
        if self.conn:
            self.pq.PQfinish(self.conn)
            self.conn = None


def load_support():
    """The module of tests/support/postgres."""
    path = str(tap.ROOT / "tests" / "support" / "postgres")
    loader = importlib.machinery.SourceFileLoader("postgres", path)
    spec = importlib.util.spec_from_loader("postgres", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


_numbers = itertools.count(1)
_first = threading.Lock()


@functools.cache
def _start_server():
    """The server of this program."""
    server = load_support().Server([
        f"sluice.lease={LEASE_MS}",
        f"sluice.worker_lease={WORKER_LEASE_MS}",
        "shared_buffers=32MB",
        "wal_init_zero=off",
        "full_page_writes=off",
    ])
    atexit.register(server.close)
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("terminated"))
    server.make()
    server.start()
    # Sessions have the address without its user; and the home of a command
    # that has no other.
    os.environ["PGUSER"] = "sluice"
    os.environ["XDG_STATE_HOME"] = str(server.dir / "state")
    return server, Connection(server.address())


def server():
    """The server of this program, and a connection to it."""
    with _first:
        return _start_server()


class Database:
    """A database for one store, which sluice has to make."""

    def __init__(self):
        self.server, self.main = server()
        self.name = f"place{next(_numbers)}"
        self.main.ask(f"CREATE DATABASE {self.name} STRATEGY file_copy")
        self.address = self.server.address(self.name)
        self.shown = self.address.replace("sluice@", "")
        self.reader = None
        self.lock = threading.Lock()

    def _open(self):
        """A connection with the views, or None while there is no store."""
        with self.lock:
            if self.reader is not None:
                return self.reader
            reader = Connection(self.address)
            found = reader.ask("SELECT to_regclass('sluice.log')")
            if found == [(None,)]:
                reader.close()
                return None
            for (view,) in reader.ask(VIEWS):
                reader.ask(view)
            reader.ask("SET search_path = pg_temp, sluice, public")
            reader.ask(FUNCTIONS)
            self.reader = reader
            return reader

    def rows(self, sql, *values):
        """Rows of a query of the scenarios; [] while there is no store."""
        reader = self._open()
        return [] if reader is None else reader.ask(_translate(sql), *values)

    def edit(self, sql, *values):
        """Change rows; how many."""
        writer = Connection(self.address)
        try:
            writer.ask("SET search_path = sluice")
            return writer.ask(_translate(sql), *values)
        finally:
            writer.close()

    def env(self, home):
        """The environment of sluice with this store."""
        return {"SLUICE_HOME": str(home), "SLUICE_STORE": self.address}

    def close(self):
        """Remove it."""
        if self.reader is not None:
            self.reader.close()
            self.reader = None
        self.main.ask(f"DROP DATABASE IF EXISTS {self.name} WITH (FORCE)")


def _translate(sql):
    """A statement of SQLite as one of PostgreSQL."""
    numbers = itertools.count(1)
    sql = re.sub(r"\?", lambda _: f"${next(numbers)}", sql)
    sql = re.sub(r"GLOB '([^'*]*)\*'", r"LIKE '\1%'", sql)
    return sql.replace("json_extract(", "pg_temp.json_extract(")
