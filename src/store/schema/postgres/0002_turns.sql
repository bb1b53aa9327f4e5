-- What a worker and a scheduler do in one transaction each, as functions: one
-- round trip, and a worker's role needs no right to the tables. docs/machines.md
-- has the protocol. Arguments and results are JSON objects. Only what workers
-- call sets the search path: the others are called with it. They are all in
-- PL/pgSQL, which plans a statement once: a function in SQL is planned with each
-- call. Arguments are jsonb, which is parsed once, and not with each look.

-- The last turn of a scheduler that changed something.
ALTER TABLE scheduler ADD COLUMN turn bigint NOT NULL DEFAULT 0;

-- The lease of a worker, in milliseconds; 0: it never ends.
CREATE FUNCTION worker_lease_ms() RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN coalesce(nullif(current_setting('sluice.worker_lease', true), ''),
        '120000')::bigint;
END
$$;

-- How long after the end of its lease a worker is lost: its shims have that
-- long to stop their sessions.
CREATE FUNCTION worker_margin_ms() RETURNS bigint
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN coalesce(nullif(current_setting('sluice.worker_margin', true),
        '')::bigint, worker_lease_ms() / 8);
END
$$;

CREATE FUNCTION worker_lease_end() RETURNS timestamptz
LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    lease bigint := worker_lease_ms();
BEGIN
    RETURN CASE lease WHEN 0 THEN 'infinity'
        ELSE clock_timestamp() + lease * interval '1 millisecond' END;
END
$$;

-- Whether the caller may speak for a worker: its login has the name of the
-- worker, or owns the store. `sluice store roles` gives such logins the right to
-- make turns, which nobody else has.
CREATE FUNCTION worker_may(who text) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN session_user = who OR pg_has_role(session_user, (SELECT relowner
        FROM pg_class WHERE oid = 'worker'::regclass), 'MEMBER');
END
$$;

-- A worker begins: 'ok'; 'taken': another home has the name, and is told to
-- stop. It takes over the work of the process before; what that has not
-- accepted only if it speaks the same protocol: else the scheduler moves it.
CREATE FUNCTION worker_begin(said jsonb) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    me worker%ROWTYPE;
BEGIN
    SELECT * INTO me FROM worker WHERE name = said ->> 'name' FOR UPDATE;
    IF me.name IS NOT NULL AND me.home <> said ->> 'home'
        AND me.state NOT IN ('lost', 'gone') THEN
        UPDATE worker SET wanted = 'stop' WHERE name = me.name;
        PERFORM pg_notify('sluice_workers', me.name);
        RETURN 'taken';
    END IF;
    INSERT INTO worker VALUES (
        said ->> 'name', said ->> 'instance', said ->> 'home', said ->> 'host',
        said ->> 'boot_id', said ->> 'labels', (said ->> 'slots')::bigint,
        (said ->> 'proto')::bigint, said ->> 'version', 'up', '',
        clock_timestamp(), clock_timestamp(), worker_lease_end(), 1, '')
    ON CONFLICT (name) DO UPDATE SET
        instance = excluded.instance, home = excluded.home,
        host = excluded.host, boot_id = excluded.boot_id,
        labels = excluded.labels, slots = excluded.slots,
        proto = excluded.proto, version = excluded.version, state = 'up',
        wanted = '', since = excluded.since, beat = excluded.beat,
        lease_until = excluded.lease_until, trouble = '';
    UPDATE work SET instance = said ->> 'instance'
        WHERE worker = said ->> 'name' AND (state IN ('accepted', 'started')
            OR (state = 'assigned' AND instance = me.instance
                AND me.proto = (said ->> 'proto')::bigint));
    RETURN 'ok';
END
$$;

-- A worker renews its lease: 'ok'; 'lost': the scheduler has declared it lost;
-- 'replaced': another process has its name. It is not gone before its work is:
-- it may not know yet that it accepted something.
CREATE FUNCTION worker_renew(said jsonb) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    now_is text := said ->> 'state';
BEGIN
    IF now_is = 'gone' AND EXISTS (SELECT 1 FROM work
        WHERE worker = said ->> 'name' AND instance = said ->> 'instance'
        AND state IN ('accepted', 'started')) THEN
        now_is := 'draining';
    END IF;
    UPDATE worker SET beat = clock_timestamp(),
        lease_until = CASE now_is WHEN 'gone'
            THEN clock_timestamp() ELSE worker_lease_end() END,
        state = now_is, trouble = said ->> 'trouble'
        WHERE name = said ->> 'name' AND instance = said ->> 'instance'
        AND state <> 'lost';
    IF FOUND THEN
        RETURN 'ok';
    END IF;
    RETURN CASE WHEN EXISTS (SELECT 1 FROM worker WHERE name = said ->> 'name'
        AND instance = said ->> 'instance') THEN 'lost' ELSE 'replaced' END;
END
$$;

-- A worker reports what became of its work.
CREATE FUNCTION worker_report(said jsonb) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE work SET state = x.to_state, report = x.report
        FROM jsonb_to_recordset(said -> 'moves') AS x(token bigint,
            to_state text, report text)
        WHERE work.token = x.token AND work.worker = said ->> 'name'
        AND work.instance = said ->> 'instance'
        AND CASE x.to_state WHEN 'started' THEN work.state = 'accepted'
            WHEN 'ended' THEN work.state IN ('accepted', 'started') END;
    NOTIFY sluice_scheduler;
END
$$;

-- A worker accepts what it has room for; returns the tokens. While the store
-- is quiet, sessions may run that it has forgotten: nothing starts.
CREATE FUNCTION worker_accept(said jsonb) RETURNS json
LANGUAGE plpgsql AS $$
DECLARE
    accepted json;
BEGIN
    WITH new AS (
        UPDATE work SET state = 'accepted', report = said ->> 'mark'
        WHERE token IN (SELECT token FROM work WHERE worker = said ->> 'name'
            AND instance = said ->> 'instance' AND state = 'assigned'
            AND want = 'run' AND clock_timestamp() >=
                (SELECT quiet_until FROM scheduler)
            ORDER BY token LIMIT (said ->> 'room')::bigint FOR UPDATE)
        RETURNING token
    ) SELECT json_agg(token) INTO accepted FROM new;
    RETURN coalesce(accepted, '[]'::json);
END
$$;

-- Logs that a worker keeps in the store, and pieces that somebody wants to see.
CREATE FUNCTION worker_log(said jsonb) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF said -> 'logs' IS NOT NULL THEN
        INSERT INTO log (token, worker, bytes, start, text)
            SELECT x.token, said ->> 'name', x.bytes, x.start,
                decode(x.text, 'base64')
            FROM jsonb_to_recordset(said -> 'logs') AS x(token bigint,
                bytes bigint, start bigint, text text)
            JOIN work ON work.token = x.token AND work.worker = said ->> 'name'
            ON CONFLICT (token) DO UPDATE SET bytes = excluded.bytes,
                start = excluded.start, text = excluded.text
                WHERE log.worker = excluded.worker;
    END IF;
    IF said -> 'pieces' IS NOT NULL THEN
        UPDATE peek SET start = x.start, text = decode(x.text, 'base64'),
            ended = x.ended
            FROM jsonb_to_recordset(said -> 'pieces') AS x(token bigint,
                start bigint, text text, ended boolean)
            WHERE peek.token = x.token AND peek.worker = said ->> 'name';
        NOTIFY sluice_answer;
    END IF;
END
$$;

-- Requests of the sessions of a worker: their numbers, and the answers to
-- earlier ones.
CREATE FUNCTION worker_ask(said jsonb) RETURNS json
LANGUAGE plpgsql AS $$
DECLARE
    asked json;
    answers json;
BEGIN
    WITH new AS (
        INSERT INTO ask (session, worker, token, who, request)
        SELECT true, work.worker, work.token, x.one ->> 'who',
            x.one ->> 'request'
        FROM jsonb_array_elements(said -> 'asks') WITH ORDINALITY AS x(one, at)
        JOIN work ON work.token = (x.one ->> 'token')::bigint
            AND work.worker = said ->> 'name'
            AND work.instance = said ->> 'instance'
        ORDER BY x.at
        RETURNING number
    ) SELECT json_agg(number) INTO asked FROM new;
    IF asked IS NOT NULL THEN
        NOTIFY sluice_scheduler;
    END IF;
    WITH old AS (
        DELETE FROM ask USING jsonb_array_elements_text(said -> 'waits') AS x(n)
        WHERE number = x.n::bigint AND worker = said ->> 'name'
        AND (answer IS NOT NULL OR taken < (SELECT epoch FROM scheduler))
        RETURNING number, answer
    ) SELECT json_agg(json_build_object('number', number, 'answer', answer))
        INTO answers FROM old;
    RETURN json_build_object('asked', coalesce(asked, '[]'::json),
        'answers', coalesce(answers, '[]'::json));
END
$$;

-- One turn of a worker: it says what it did, and sees what it is to do. Only
-- what it accepts must be on disk when it hears of it. A crash of the server that
-- forgets a report makes the worker say it again; and once a scheduler has stored
-- what follows from a report, the report is on disk, too.
CREATE FUNCTION worker_turn(said jsonb) RETURNS json
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    state text;
    me worker%ROWTYPE;
    accepted json := '[]';
    asks json := '{}';
BEGIN
    IF NOT worker_may(said ->> 'name') THEN
        RAISE insufficient_privilege USING MESSAGE = format(
            'the role %s may not be the worker %s', session_user,
            said ->> 'name');
    END IF;
    IF (said ->> 'fresh')::boolean THEN
        state := worker_begin(said);
        NOTIFY sluice_scheduler;
    ELSE
        state := worker_renew(said);
        IF said ->> 'news' IS NOT NULL THEN
            NOTIFY sluice_scheduler;
        END IF;
    END IF;
    IF state <> 'ok' THEN
        RETURN json_build_object('state', state);
    END IF;
    IF said -> 'moves' IS NOT NULL THEN
        PERFORM worker_report(said);
    END IF;
    IF said -> 'room' IS NOT NULL THEN
        accepted := worker_accept(said);
    END IF;
    IF said -> 'logs' IS NOT NULL OR said -> 'pieces' IS NOT NULL THEN
        PERFORM worker_log(said);
    END IF;
    IF said -> 'asks' IS NOT NULL OR said -> 'waits' IS NOT NULL THEN
        asks := worker_ask(said);
    END IF;
    IF accepted::text = '[]' AND NOT (said ->> 'fresh')::boolean THEN
        PERFORM set_config('synchronous_commit', 'off', true);
    END IF;
    SELECT * INTO me FROM worker WHERE name = said ->> 'name';
    RETURN json_build_object('state', 'ok', 'wanted', me.wanted,
        'gone', me.state = 'gone',
        'generation', me.generation, 'lease_ms', worker_lease_ms(),
        'margin_ms', worker_margin_ms(), 'accepted', accepted,
        'asks', asks, 'id', (SELECT id FROM scheduler),
        'peeks', (SELECT coalesce(json_agg(json_build_object('token', token,
            'first', first)), '[]'::json) FROM peek
            WHERE worker = me.name AND NOT ended
            AND wanted > clock_timestamp() - interval '5 seconds'),
        'rows', (SELECT coalesce(json_agg(json_build_object('token', w.token,
            'nonce', w.nonce, 'state', w.state, 'want', w.want,
            'messages', w.messages, 'report', w.report,
            'body', CASE WHEN k.t IS NULL THEN w.body END) ORDER BY w.token),
            '[]'::json)
            FROM work w LEFT JOIN jsonb_array_elements_text(said -> 'knows')
                AS k(t) ON k.t::bigint = w.token
            WHERE w.worker = me.name AND w.instance = me.instance
            AND w.state IN ('accepted', 'started')));
END
$$;

-- It has the rights of the owner: the caller must not put tables of its own
-- before those of the store.
REVOKE ALL ON FUNCTION worker_turn(jsonb) FROM PUBLIC;
DO $$ BEGIN
    EXECUTE format('ALTER FUNCTION worker_turn(jsonb) SET search_path = %I,'
        ' pg_temp', current_schema());
END $$;

-- Workers whose lease ended long enough ago are lost, with the work that they
-- accepted; or one of this name is. These are two statements: the second sees
-- what a worker accepted in a turn for which the first had to wait.
CREATE FUNCTION scheduler_lose(who text) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    gone text[];
    margin interval := worker_margin_ms() * interval '1 millisecond';
BEGIN
    WITH lost AS (
        UPDATE worker SET state = 'lost', generation = generation + 1
        WHERE state IN ('up', 'draining') AND CASE WHEN who IS NULL
            THEN lease_until + margin < clock_timestamp()
            ELSE name = who END
        RETURNING name
    ) SELECT array_agg(name) INTO gone FROM lost;
    UPDATE work SET state = 'lost' WHERE worker = ANY (gone)
        AND state IN ('accepted', 'started');
    PERFORM pg_notify('sluice_workers', name) FROM unnest(gone) AS name;
END
$$;

-- Orders for workers, a list: they come with the batch that has their claims,
-- or with a turn.
CREATE FUNCTION scheduler_assign(orders jsonb) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO work (token, nonce, worker, instance, body, want, state)
        SELECT x.token, x.nonce, x.worker, x.instance, x.body, 'run', 'assigned'
        FROM jsonb_to_recordset(orders) AS x(token bigint, nonce text,
            worker text, instance text, body text)
        ON CONFLICT (token) DO UPDATE SET nonce = excluded.nonce,
            worker = excluded.worker, instance = excluded.instance,
            body = excluded.body, want = 'run', messages = NULL,
            state = 'assigned', report = NULL
            WHERE work.nonce <> excluded.nonce;
    PERFORM pg_notify('sluice_workers', x.worker) FROM (SELECT DISTINCT worker
        FROM jsonb_to_recordset(orders) AS o(worker text)) AS x;
END
$$;

-- What a scheduler wants changed for work that is assigned, and whom to wake.
CREATE FUNCTION scheduler_steer(said jsonb) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    IF said -> 'moves' IS NOT NULL THEN
        UPDATE work SET worker = x.worker, instance = x.instance,
            state = 'assigned'
            FROM jsonb_to_recordset(said -> 'moves') AS x(token bigint,
                from_worker text, worker text, instance text)
            WHERE work.token = x.token AND work.state = 'assigned'
            AND work.worker = x.from_worker;
        PERFORM pg_notify('sluice_workers', x.worker) FROM (SELECT DISTINCT
            worker FROM jsonb_to_recordset(said -> 'moves')
            AS m(worker text)) AS x;
    END IF;
    IF said -> 'recalls' IS NOT NULL THEN
        DELETE FROM work USING jsonb_to_recordset(said -> 'recalls') AS x(
                token bigint, from_worker text)
            WHERE work.token = x.token AND work.state = 'assigned'
            AND work.worker = x.from_worker;
    END IF;
    IF said -> 'wants' IS NOT NULL THEN
        UPDATE work SET want = x.want,
            state = CASE WHEN x.want <> 'run' AND work.state = 'assigned'
                THEN 'ended' ELSE work.state END,
            report = CASE WHEN x.want <> 'run' AND work.state = 'assigned'
                THEN json_build_object('token', work.token, 'type', 'refused',
                    'withdrawn', true)::text ELSE work.report END
            FROM jsonb_to_recordset(said -> 'wants') AS x(token bigint,
                want text)
            WHERE work.token = x.token;
    END IF;
    IF said -> 'tells' IS NOT NULL THEN
        UPDATE work SET messages = x.text
            FROM jsonb_to_recordset(said -> 'tells') AS x(token bigint,
                text text)
            WHERE work.token = x.token;
    END IF;
    PERFORM pg_notify('sluice_workers', x.worker) FROM (
        SELECT work.worker FROM jsonb_to_recordset(said -> 'wants')
            AS w(token bigint) JOIN work ON work.token = w.token
        UNION SELECT work.worker FROM jsonb_to_recordset(said -> 'tells')
            AS t(token bigint) JOIN work ON work.token = t.token) AS x;
END
$$;

-- The answers of a scheduler to requests; wakes who waits for them.
CREATE FUNCTION scheduler_answer(answers jsonb) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE ask SET answer = x.answer
        FROM jsonb_to_recordset(answers) AS x(number bigint, answer text)
        WHERE ask.number = x.number;
    IF FOUND THEN
        NOTIFY sluice_answer;
    END IF;
    PERFORM pg_notify('sluice_workers', x.worker) FROM (SELECT DISTINCT
        ask.worker FROM jsonb_to_recordset(answers) AS a(number bigint)
        JOIN ask ON ask.number = a.number WHERE ask.worker IS NOT NULL) AS x;
END
$$;

-- What a scheduler wants changed; false: it is not the scheduler any more, or
-- it has given up this turn and made another one. Its first turn wakes all
-- workers. Now and then, what nobody waits for any more is removed.
CREATE FUNCTION scheduler_change(said jsonb) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
    UPDATE scheduler SET listens = true, turn = (said ->> 'turn')::bigint
        WHERE epoch = (said ->> 'epoch')::bigint
        AND turn < (said ->> 'turn')::bigint;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    IF said -> 'orders' IS NOT NULL THEN
        PERFORM scheduler_assign(said -> 'orders');
    END IF;
    IF said -> 'moves' IS NOT NULL OR said -> 'recalls' IS NOT NULL
        OR said -> 'wants' IS NOT NULL OR said -> 'tells' IS NOT NULL THEN
        PERFORM scheduler_steer(said);
    END IF;
    IF said -> 'answers' IS NOT NULL THEN
        PERFORM scheduler_answer(said -> 'answers');
    END IF;
    IF said -> 'first' IS NOT NULL THEN
        NOTIFY sluice_workers;
    END IF;
    IF (said ->> 'turn')::bigint % 100 = 0 THEN
        DELETE FROM ask WHERE asked < clock_timestamp() - interval '1 hour';
        DELETE FROM peek WHERE wanted < clock_timestamp() - interval '1 minute';
    END IF;
    RETURN true;
END
$$;

-- One turn of a scheduler, in the same way. Functions that read a setting are
-- called once, and not for each worker.
CREATE FUNCTION scheduler_turn(said jsonb) RETURNS json
LANGUAGE plpgsql AS $$
DECLARE
    asks json;
    lease bigint := worker_lease_ms();
    margin bigint := worker_margin_ms();
    third interval := lease / 3.0 * interval '1 millisecond';
    late boolean := said -> 'patient' IS NULL AND EXISTS (SELECT 1 FROM worker
        WHERE state IN ('up', 'draining') AND lease_until
            + margin * interval '1 millisecond' < clock_timestamp());
    asked boolean := EXISTS (SELECT 1 FROM ask WHERE taken IS NULL);
BEGIN
    IF said -> 'changes' IS NOT NULL OR late OR asked THEN
        IF NOT scheduler_change(said) THEN
            RETURN json_build_object('superseded', true);
        END IF;
        IF late THEN
            PERFORM scheduler_lose(NULL);
        END IF;
        IF asked THEN
            WITH took AS (
                UPDATE ask SET taken = (said ->> 'epoch')::bigint
                WHERE taken IS NULL RETURNING *
            ) SELECT json_agg(json_build_object('number', number, 'session',
                session, 'worker', worker, 'token', token, 'who', who,
                'request', request) ORDER BY number) INTO asks FROM took;
        END IF;
    END IF;
    RETURN json_build_object('asks', coalesce(asks, '[]'::json),
        'lease_ms', lease, 'margin_ms', margin,
        'workers', (SELECT coalesce(json_agg(json_build_object('name', name,
            'instance', instance, 'labels', labels, 'slots', slots, 'proto',
            proto, 'state', state, 'trouble', trouble, 'fresh',
            quiet_until <= clock_timestamp() AND (lease_until = 'infinity'
                OR lease_until - clock_timestamp() > third))
            ORDER BY name), '[]'::json) FROM worker, (SELECT quiet_until FROM
            scheduler) AS s WHERE state <> 'gone'),
        'rows', (SELECT coalesce(json_agg(json_build_object('token', token,
            'worker', worker, 'instance', instance, 'state', state, 'report',
            CASE WHEN state <> 'assigned' AND state <> 'accepted'
                THEN report END) ORDER BY token), '[]'::json) FROM work));
END
$$;
