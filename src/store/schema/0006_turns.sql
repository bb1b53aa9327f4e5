-- How many foreground tasks a run owes before an aged background task may go
-- first again.

ALTER TABLE run ADD COLUMN owed INTEGER NOT NULL DEFAULT 0;
