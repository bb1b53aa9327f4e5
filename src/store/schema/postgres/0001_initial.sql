-- The first version of a store in PostgreSQL. docs/store.md tells what the
-- columns mean. Numbers without a sign are stored as the signed number of the
-- same bits; texts are compared byte by byte.

-- The right to write (docs/machines.md), and the last numbers of all. Another
-- `timeline` of the server means that a standby was promoted, or a backup
-- restored: the last transactions may be gone, and no order is given until
-- `quiet_until`, when all sessions that are not known here have ended.
CREATE TABLE scheduler (
    one bigint PRIMARY KEY CHECK (one = 1),
    id text COLLATE "C" NOT NULL,
    epoch bigint NOT NULL,
    holder text COLLATE "C" NOT NULL, -- random, of this epoch
    pid bigint NOT NULL,
    start_ticks bigint NOT NULL,
    host text COLLATE "C" NOT NULL,
    boot_id text COLLATE "C" NOT NULL,
    taken timestamptz NOT NULL,
    backend_pid bigint NOT NULL,
    backend_start timestamptz NOT NULL,
    lease_until timestamptz NOT NULL,
    beat timestamptz NOT NULL,
    listens boolean NOT NULL,
    commits bigint NOT NULL,
    commit_ns bigint NOT NULL,
    trouble text COLLATE "C" NOT NULL,
    writes bigint NOT NULL,
    engine_ns bigint NOT NULL,
    wall_ns bigint NOT NULL,
    last_token bigint NOT NULL,
    last_event bigint NOT NULL,
    last_sum bigint NOT NULL,
    last_command bigint NOT NULL,
    last_run bigint NOT NULL,
    timeline text COLLATE "C" NOT NULL,
    quiet_until timestamptz NOT NULL
) WITH (fillfactor = 10);

INSERT INTO scheduler VALUES (
    1, replace(gen_random_uuid()::text, '-', ''), 0, '', 0, 0, '', '',
    '-infinity', 0, '-infinity', '-infinity', '-infinity', false, 0, 0, '',
    0, 0, 0, 0, 0, 0, 0, 0, '', '-infinity'
);

CREATE TABLE run (
    number bigint PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE,
    name text COLLATE "C" NOT NULL,
    file text COLLATE "C" NOT NULL,
    folder text COLLATE "C" NOT NULL,
    processors bigint NOT NULL,
    created_ns bigint NOT NULL,
    rules bigint NOT NULL,
    base_gates boolean NOT NULL,
    not_before_ns bigint NOT NULL,
    worker text COLLATE "C" NOT NULL,
    finished boolean NOT NULL,
    paused boolean NOT NULL,
    cancelled boolean NOT NULL,
    barrier bigint NOT NULL,
    completions bigint NOT NULL,
    owed bigint NOT NULL,
    stopped bigint NOT NULL,
    deadline_over boolean NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE fragment (
    run bigint NOT NULL,
    number bigint NOT NULL,
    file text COLLATE "C" NOT NULL,
    key text COLLATE "C",
    text bytea NOT NULL,
    PRIMARY KEY (run, number)
);

CREATE TABLE run_limit (
    run bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    max bigint NOT NULL,
    percent bigint NOT NULL,
    PRIMARY KEY (run, name)
);

CREATE TABLE executor (
    name text COLLATE "C" PRIMARY KEY,
    steps bigint NOT NULL,
    steps_kept bigint NOT NULL,
    confirming boolean NOT NULL,
    shut_until_ns bigint NOT NULL,
    usage boolean NOT NULL,
    failures bigint NOT NULL,
    circuit_open boolean NOT NULL,
    probe_token bigint NOT NULL,
    probe_steps bigint NOT NULL,
    probe_at_ns bigint NOT NULL,
    stopped boolean NOT NULL,
    reason text COLLATE "C"
) WITH (fillfactor = 50);

CREATE TABLE setting (
    name text COLLATE "C" PRIMARY KEY,
    value text COLLATE "C" NOT NULL
) WITH (fillfactor = 70);

CREATE TABLE task (
    key bigint PRIMARY KEY,
    id text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL,
    flags bigint NOT NULL,
    parked bigint NOT NULL,
    ready_ns bigint NOT NULL,
    ready_seq bigint NOT NULL,
    until_ns bigint NOT NULL,
    started_ns bigint NOT NULL,
    service_ns bigint NOT NULL,
    version bigint NOT NULL,
    token bigint NOT NULL,
    leader bigint,
    place bigint NOT NULL,
    attempts bigint NOT NULL,
    number bigint NOT NULL,
    tries bigint NOT NULL,
    reworks bigint NOT NULL,
    checkpoints bigint NOT NULL,
    cause bigint,
    reason text COLLATE "C",
    feedback text COLLATE "C",
    carry text COLLATE "C",
    outputs text COLLATE "C",
    usd float8 NOT NULL,
    tokens bigint NOT NULL
) WITH (fillfactor = 70);

-- An index on `over` lets a claimed attempt become a running one without
-- another entry in any index (a HOT update).
CREATE TABLE attempt (
    token bigint PRIMARY KEY,
    run bigint NOT NULL,
    task bigint NOT NULL,
    number bigint NOT NULL,
    task_count bigint NOT NULL,
    slot bigint NOT NULL,
    state text COLLATE "C" NOT NULL,
    epoch bigint NOT NULL,
    boot_id text COLLATE "C" NOT NULL,
    nonce text COLLATE "C" NOT NULL,
    pid bigint NOT NULL,
    start_ticks bigint NOT NULL,
    claimed_ns bigint NOT NULL,
    begun_ns bigint NOT NULL,
    ended_ns bigint NOT NULL,
    outcome text COLLATE "C",
    cause text COLLATE "C",
    reason text COLLATE "C",
    code bigint NOT NULL,
    signal bigint NOT NULL,
    input_tokens bigint NOT NULL,
    cached_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    usd float8 NOT NULL,
    confined boolean NOT NULL,
    worker text COLLATE "C" NOT NULL,
    over boolean GENERATED ALWAYS AS (state = 'ended') STORED,
    UNIQUE (run, task, number)
) WITH (fillfactor = 70);

CREATE INDEX attempt_open ON attempt (token) WHERE NOT over;

CREATE TABLE gate (
    token bigint NOT NULL,
    place bigint NOT NULL,
    run bigint NOT NULL,
    task bigint NOT NULL,
    repo text COLLATE "C" NOT NULL,
    tree text COLLATE "C" NOT NULL,
    commit_id text COLLATE "C" NOT NULL,
    command text COLLATE "C" NOT NULL,
    verdict text COLLATE "C" NOT NULL,
    tries bigint NOT NULL,
    wall_ns bigint NOT NULL,
    tested_by text COLLATE "C" NOT NULL,
    output text COLLATE "C",
    PRIMARY KEY (token, place)
);

CREATE INDEX gate_repo ON gate USING hash (repo);
CREATE INDEX gate_run ON gate (run, task);

CREATE TABLE event (
    number bigint PRIMARY KEY,
    wall_ns bigint NOT NULL,
    run bigint,
    task bigint,
    kind text COLLATE "C" NOT NULL,
    data text COLLATE "C" NOT NULL,
    sum bigint NOT NULL
);

CREATE INDEX event_run ON event (run, number);

CREATE TABLE command (
    number bigint PRIMARY KEY,
    wall_ns bigint NOT NULL,
    who text COLLATE "C" NOT NULL,
    verb text COLLATE "C" NOT NULL,
    args text COLLATE "C" NOT NULL,
    key text COLLATE "C",
    answer text COLLATE "C"
);

CREATE INDEX command_open ON command (number) WHERE answer IS NULL;
CREATE INDEX command_key ON command USING hash (key) WHERE key IS NOT NULL;

-- Requests on their way to the scheduler, and its answers on their way back.
-- A row without `taken` was seen by no scheduler. A request of a session has its
-- worker and the token of its attempt. Rows do not stay.
CREATE TABLE ask (
    number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    asked timestamptz NOT NULL DEFAULT clock_timestamp(),
    session boolean NOT NULL,
    worker text COLLATE "C",
    token bigint,
    who text COLLATE "C" NOT NULL,
    request text COLLATE "C" NOT NULL,
    taken bigint,
    answer text COLLATE "C"
);

-- The machines that run sessions. A worker keeps its row alive; the scheduler
-- declares it lost, which begins another generation of leases. `home` names the
-- directory that the worker has its sessions in, `instance` its process.
CREATE TABLE worker (
    name text COLLATE "C" PRIMARY KEY,
    instance text COLLATE "C" NOT NULL,
    home text COLLATE "C" NOT NULL,
    host text COLLATE "C" NOT NULL,
    boot_id text COLLATE "C" NOT NULL,
    labels text COLLATE "C" NOT NULL,
    slots bigint NOT NULL,
    proto bigint NOT NULL,
    version text COLLATE "C" NOT NULL,
    state text COLLATE "C" NOT NULL,
    wanted text COLLATE "C" NOT NULL,
    since timestamptz NOT NULL,
    beat timestamptz NOT NULL,
    lease_until timestamptz NOT NULL,
    generation bigint NOT NULL,
    trouble text COLLATE "C" NOT NULL
) WITH (fillfactor = 50);

-- One row for each attempt that a worker has. The scheduler makes it, changes
-- what it wants, and removes it with the end of the attempt; the worker changes
-- its state: assigned, accepted, started, ended. The scheduler alone makes it
-- lost.
CREATE TABLE work (
    token bigint PRIMARY KEY,
    nonce text COLLATE "C" NOT NULL,
    worker text COLLATE "C" NOT NULL,
    instance text COLLATE "C" NOT NULL,
    body text COLLATE "C" NOT NULL,
    want text COLLATE "C" NOT NULL,
    messages text COLLATE "C",
    state text COLLATE "C" NOT NULL,
    report text COLLATE "C"
) WITH (fillfactor = 50);

CREATE INDEX work_worker ON work (worker);

-- Logs of sessions elsewhere: their capped copies, and what somebody wants to
-- see of a running one, which is removed when nobody asks any more.
CREATE TABLE log (
    token bigint PRIMARY KEY,
    worker text COLLATE "C" NOT NULL,
    bytes bigint NOT NULL,
    start bigint NOT NULL,
    text bytea NOT NULL
);

CREATE TABLE peek (
    token bigint PRIMARY KEY,
    worker text COLLATE "C" NOT NULL,
    wanted timestamptz NOT NULL,
    first bigint NOT NULL,
    start bigint NOT NULL,
    text bytea NOT NULL,
    ended boolean NOT NULL
);
