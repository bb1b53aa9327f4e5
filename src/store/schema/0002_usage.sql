-- What was read by usage monitors and is to be told to hooks; what tasks cost.

ALTER TABLE executor ADD COLUMN confirming INTEGER NOT NULL DEFAULT 0;

CREATE TABLE setting (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

ALTER TABLE task ADD COLUMN usd REAL NOT NULL DEFAULT 0;
ALTER TABLE task ADD COLUMN tokens INTEGER NOT NULL DEFAULT 0;

UPDATE task SET
    usd = (
        SELECT total(attempt.usd) FROM attempt
        WHERE attempt.run = task.run AND attempt.task = task.ix
    ),
    tokens = (
        SELECT coalesce(sum(input_tokens + output_tokens), 0) FROM attempt
        WHERE attempt.run = task.run AND attempt.task = task.ix
    );
