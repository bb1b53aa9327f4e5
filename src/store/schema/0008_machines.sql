-- The worker that has an attempt; '': the scheduler's own. The worker on whose
-- machine the files of a plan are; '': any.

ALTER TABLE attempt ADD COLUMN worker TEXT NOT NULL DEFAULT '';
ALTER TABLE run ADD COLUMN worker TEXT NOT NULL DEFAULT '';
