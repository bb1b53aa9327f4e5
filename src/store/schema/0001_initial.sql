-- The first version of the store. docs/store.md tells what the columns mean.
-- Numbers without a sign are stored as the signed number of the same bits.

CREATE TABLE scheduler (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    epoch INTEGER NOT NULL,
    pid INTEGER NOT NULL,
    start_ticks INTEGER NOT NULL,
    host TEXT NOT NULL,
    boot_id TEXT NOT NULL,
    writes INTEGER NOT NULL,
    engine_ns INTEGER NOT NULL,
    wall_ns INTEGER NOT NULL,
    last_token INTEGER NOT NULL,
    last_event INTEGER NOT NULL,
    last_sum INTEGER NOT NULL,
    last_command INTEGER NOT NULL,
    last_run INTEGER NOT NULL
) STRICT;

INSERT INTO scheduler VALUES (1, 0, 0, 0, '', '', 0, 0, 0, 0, 0, 0, 0, 0);

CREATE TABLE run (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    file TEXT NOT NULL,
    folder TEXT NOT NULL,
    processors INTEGER NOT NULL,
    created_ns INTEGER NOT NULL,
    finished INTEGER NOT NULL,
    paused INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    barrier INTEGER NOT NULL,
    completions INTEGER NOT NULL
) STRICT;

-- The plans' texts stand apart: the row of a run changes often, and they
-- would be written again with it. Fragment 0 is the plan itself.
CREATE TABLE fragment (
    run INTEGER NOT NULL,
    number INTEGER NOT NULL,
    file TEXT NOT NULL,
    text BLOB NOT NULL,
    PRIMARY KEY (run, number)
) STRICT;

CREATE TABLE run_limit (
    run INTEGER NOT NULL,
    name TEXT NOT NULL,
    max INTEGER NOT NULL,
    percent INTEGER NOT NULL,
    PRIMARY KEY (run, name)
) STRICT, WITHOUT ROWID;

CREATE TABLE executor (
    name TEXT PRIMARY KEY,
    steps INTEGER NOT NULL,
    steps_kept INTEGER NOT NULL,
    shut_until_ns INTEGER NOT NULL,
    usage INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    circuit_open INTEGER NOT NULL,
    probe_token INTEGER NOT NULL,
    probe_steps INTEGER NOT NULL,
    probe_at_ns INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE task (
    key INTEGER PRIMARY KEY,
    run INTEGER GENERATED ALWAYS AS (key >> 32) VIRTUAL,
    ix INTEGER GENERATED ALWAYS AS (key & 4294967295) VIRTUAL,
    id TEXT NOT NULL,
    state TEXT NOT NULL,
    flags INTEGER NOT NULL,
    parked INTEGER NOT NULL,
    ready_ns INTEGER NOT NULL,
    ready_seq INTEGER NOT NULL,
    until_ns INTEGER NOT NULL,
    started_ns INTEGER NOT NULL,
    service_ns INTEGER NOT NULL,
    version INTEGER NOT NULL,
    token INTEGER NOT NULL,
    leader INTEGER,
    place INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    number INTEGER NOT NULL,
    tries INTEGER NOT NULL,
    reworks INTEGER NOT NULL,
    checkpoints INTEGER NOT NULL,
    cause INTEGER,
    reason TEXT,
    feedback TEXT
) STRICT;

CREATE TABLE attempt (
    token INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    task INTEGER NOT NULL,
    number INTEGER NOT NULL,
    task_count INTEGER NOT NULL,
    state TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    boot_id TEXT NOT NULL,
    pid INTEGER NOT NULL,
    start_ticks INTEGER NOT NULL,
    claimed_ns INTEGER NOT NULL,
    begun_ns INTEGER NOT NULL,
    ended_ns INTEGER NOT NULL,
    outcome TEXT,
    cause TEXT,
    reason TEXT,
    code INTEGER NOT NULL,
    signal INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    usd REAL NOT NULL,
    UNIQUE (run, task, number)
) STRICT;

-- What a scheduler reads when it starts, however many have ended.
CREATE INDEX attempt_open ON attempt (token) WHERE state <> 'ended';

CREATE TABLE event (
    number INTEGER PRIMARY KEY,
    wall_ns INTEGER NOT NULL,
    run INTEGER,
    task INTEGER,
    kind TEXT NOT NULL,
    data TEXT NOT NULL,
    sum INTEGER NOT NULL
) STRICT;

CREATE TABLE command (
    number INTEGER PRIMARY KEY,
    wall_ns INTEGER NOT NULL,
    who TEXT NOT NULL,
    verb TEXT NOT NULL,
    args TEXT NOT NULL,
    answer TEXT
) STRICT;

CREATE INDEX command_open ON command (number) WHERE answer IS NULL;
