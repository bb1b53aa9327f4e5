-- Coding agents: what the next attempt of a task is told beside its feedback,
-- input tokens that were read from a cache, slots, the nonce by which the files
-- of an attempt are known as its own, and providers that are stopped.

ALTER TABLE task ADD COLUMN carry TEXT;
ALTER TABLE attempt ADD COLUMN cached_tokens INTEGER NOT NULL DEFAULT 0;
ALTER TABLE attempt ADD COLUMN slot INTEGER NOT NULL DEFAULT 0;
ALTER TABLE attempt ADD COLUMN nonce TEXT NOT NULL DEFAULT '';
ALTER TABLE executor ADD COLUMN stopped INTEGER NOT NULL DEFAULT 0;
ALTER TABLE executor ADD COLUMN reason TEXT;
