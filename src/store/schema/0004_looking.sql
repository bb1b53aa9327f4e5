-- Events of one run, and an order by its key, without reading all others; and
-- a name for the store, which it keeps wherever its files go.

CREATE INDEX event_run ON event (run);

-- A sender makes keys up, so that equal ones are no reason to refuse a batch.
ALTER TABLE command ADD COLUMN key TEXT;
CREATE INDEX command_key ON command (key) WHERE key IS NOT NULL;

ALTER TABLE scheduler ADD COLUMN id TEXT NOT NULL DEFAULT '';
UPDATE scheduler SET id = lower(hex(randomblob(16)));
