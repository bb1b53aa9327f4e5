-- Whether a sandbox confined the session.

ALTER TABLE attempt ADD COLUMN confined INTEGER NOT NULL DEFAULT 0;

-- Verdicts of gates, by which merges know trees that were tested before; by
-- repository, for merges and `sluice verify`, and by run, for its report and its
-- removal.

CREATE TABLE gate (
    token INTEGER NOT NULL,
    place INTEGER NOT NULL,
    run INTEGER NOT NULL,
    task INTEGER NOT NULL,
    repo TEXT NOT NULL,
    tree TEXT NOT NULL,
    commit_id TEXT NOT NULL,
    command TEXT NOT NULL,
    verdict TEXT NOT NULL,
    tries INTEGER NOT NULL,
    wall_ns INTEGER NOT NULL,
    tested_by TEXT NOT NULL,
    output TEXT,
    PRIMARY KEY (token, place)
) STRICT, WITHOUT ROWID;

CREATE INDEX gate_repo ON gate (repo);
CREATE INDEX gate_run ON gate (run, task);

-- The version of the rules by which the plan of a run is read: runs that exist
-- keep theirs.

ALTER TABLE run ADD COLUMN rules INTEGER NOT NULL DEFAULT 0;

-- Runs of earlier versions have no tasks that gate bases: their plans must be
-- read as they were.

ALTER TABLE run ADD COLUMN base_gates INTEGER NOT NULL DEFAULT 0;
