-- Runs that stop: the reason (enum sched_stop), and whether the deadline was
-- used up. The wall-clock time before which a run starts nothing; 0: none.

ALTER TABLE run ADD COLUMN stopped INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN deadline_over INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN not_before_ns INTEGER NOT NULL DEFAULT 0;

-- Named strings that the last succeeded session of a task left for its
-- dependents, as a JSON object.

ALTER TABLE task ADD COLUMN outputs TEXT;

-- The sender's name for a fragment, by which it is added once only.

ALTER TABLE fragment ADD COLUMN key TEXT;
