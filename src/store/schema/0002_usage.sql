-- What was read by usage monitors and is to be told to hooks; what tasks cost.
--
-- Tables are made anew instead of altered: for a while stores of version 1 had
-- these columns already.

CREATE TABLE IF NOT EXISTS setting (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE executor_2 (
    name TEXT PRIMARY KEY,
    steps INTEGER NOT NULL,
    steps_kept INTEGER NOT NULL,
    shut_until_ns INTEGER NOT NULL,
    usage INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    circuit_open INTEGER NOT NULL,
    probe_token INTEGER NOT NULL,
    probe_steps INTEGER NOT NULL,
    probe_at_ns INTEGER NOT NULL,
    confirming INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO executor_2 SELECT
    name, steps, steps_kept, shut_until_ns, usage, failures, circuit_open,
    probe_token, probe_steps, probe_at_ns,
    0
FROM executor;

DROP TABLE executor;
ALTER TABLE executor_2 RENAME TO executor;

CREATE TABLE task_2 (
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
    feedback TEXT,
    usd REAL NOT NULL,
    tokens INTEGER NOT NULL
) STRICT;

INSERT INTO task_2 SELECT
    key, id, state, flags, parked, ready_ns, ready_seq, until_ns, started_ns,
    service_ns, version, token, leader, place, attempts, number, tries,
    reworks, checkpoints, cause, reason, feedback,
    (
        SELECT total(attempt.usd) FROM attempt
        WHERE attempt.run = task.run AND attempt.task = task.ix
    ),
    (
        SELECT coalesce(sum(input_tokens + output_tokens), 0) FROM attempt
        WHERE attempt.run = task.run AND attempt.task = task.ix
    )
FROM task;

DROP TABLE task;
ALTER TABLE task_2 RENAME TO task;
