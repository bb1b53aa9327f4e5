# SPDX-License-Identifier: MIT
"""A PostgreSQL server for scenarios, and statements to it.

    with database.server() as server:
        tap.sluice("store", "copy", folder, server.address())
        server.sql("SELECT count(*) FROM sluice.run")
"""

import contextlib
import importlib.machinery
import importlib.util
import subprocess

import tap

PATH = str(tap.ROOT / "tests/support/postgres")


def load():
    """tests/support/postgres as a module."""
    loader = importlib.machinery.SourceFileLoader("postgres", PATH)
    spec = importlib.util.spec_from_loader("postgres", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


postgres = load()


class Database(postgres.Server):
    """A server, and statements to it."""

    def as_role(self, role):
        """The address of the server for a role."""
        return self.address().replace("sluice@", f"{role}@")

    def try_sql(self, text, role="sluice"):
        """Run statements; the finished process of psql."""
        return subprocess.run(
            [postgres.program("psql"), "-XAtq", "-v", "ON_ERROR_STOP=1",
             self.as_role(role)],
            capture_output=True,
            check=False,
            encoding="utf-8",
            input=text,
        )

    def sql(self, text, role="sluice"):
        """Run statements, which must succeed; what they print."""
        done = self.try_sql(text, role)
        assert done.returncode == 0, f"{text}: {done.stderr}"
        return done.stdout.strip()


@contextlib.contextmanager
def server(*options):
    """A server that ends with the block; options are settings of it."""
    database = Database(options)
    try:
        database.make()
        database.start()
        yield database
    finally:
        database.close()
