-- A store of version 2, as a scheduler left it: the plan of the test
-- store-upgrade-postgres. @FOLDER@ is its folder, @HOST@ its machine.
SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
CREATE SCHEMA sluice;
CREATE FUNCTION sluice.scheduler_answer(answers jsonb) RETURNS void
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION sluice.scheduler_assign(orders jsonb) RETURNS void
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION sluice.scheduler_change(said jsonb) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION sluice.scheduler_lose(who text) RETURNS void
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION sluice.scheduler_steer(said jsonb) RETURNS void
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION sluice.scheduler_turn(said jsonb) RETURNS json
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION sluice.worker_accept(said jsonb) RETURNS json
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION sluice.worker_ask(said jsonb) RETURNS json
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION sluice.worker_begin(said jsonb) RETURNS text
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION sluice.worker_lease_end() RETURNS timestamp with time zone
    LANGUAGE plpgsql
    AS $$
DECLARE
    lease bigint := worker_lease_ms();
BEGIN
    RETURN CASE lease WHEN 0 THEN 'infinity'
        ELSE clock_timestamp() + lease * interval '1 millisecond' END;
END
$$;
CREATE FUNCTION sluice.worker_lease_ms() RETURNS bigint
    LANGUAGE plpgsql STABLE
    AS $$
BEGIN
    RETURN coalesce(nullif(current_setting('sluice.worker_lease', true), ''),
        '120000')::bigint;
END
$$;
CREATE FUNCTION sluice.worker_log(said jsonb) RETURNS void
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION sluice.worker_margin_ms() RETURNS bigint
    LANGUAGE plpgsql STABLE
    AS $$
BEGIN
    RETURN coalesce(nullif(current_setting('sluice.worker_margin', true),
        '')::bigint, worker_lease_ms() / 8);
END
$$;
CREATE FUNCTION sluice.worker_may(who text) RETURNS boolean
    LANGUAGE plpgsql STABLE
    AS $$
BEGIN
    RETURN session_user = who OR pg_has_role(session_user, (SELECT relowner
        FROM pg_class WHERE oid = 'worker'::regclass), 'MEMBER');
END
$$;
CREATE FUNCTION sluice.worker_renew(said jsonb) RETURNS text
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION sluice.worker_report(said jsonb) RETURNS void
    LANGUAGE plpgsql
    AS $$
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
CREATE FUNCTION sluice.worker_turn(said jsonb) RETURNS json
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'sluice', 'pg_temp'
    AS $$
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
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE sluice.ask (
    number bigint NOT NULL,
    asked timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    session boolean NOT NULL,
    worker text COLLATE pg_catalog."C",
    token bigint,
    who text NOT NULL COLLATE pg_catalog."C",
    request text NOT NULL COLLATE pg_catalog."C",
    taken bigint,
    answer text COLLATE pg_catalog."C"
);
ALTER TABLE sluice.ask ALTER COLUMN number ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME sluice.ask_number_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE sluice.attempt (
    token bigint NOT NULL,
    run bigint NOT NULL,
    task bigint NOT NULL,
    number bigint NOT NULL,
    task_count bigint NOT NULL,
    slot bigint NOT NULL,
    state text NOT NULL COLLATE pg_catalog."C",
    epoch bigint NOT NULL,
    boot_id text NOT NULL COLLATE pg_catalog."C",
    nonce text NOT NULL COLLATE pg_catalog."C",
    pid bigint NOT NULL,
    start_ticks bigint NOT NULL,
    claimed_ns bigint NOT NULL,
    begun_ns bigint NOT NULL,
    ended_ns bigint NOT NULL,
    outcome text COLLATE pg_catalog."C",
    cause text COLLATE pg_catalog."C",
    reason text COLLATE pg_catalog."C",
    code bigint NOT NULL,
    signal bigint NOT NULL,
    input_tokens bigint NOT NULL,
    cached_tokens bigint NOT NULL,
    output_tokens bigint NOT NULL,
    usd double precision NOT NULL,
    confined boolean NOT NULL,
    worker text NOT NULL COLLATE pg_catalog."C",
    over boolean GENERATED ALWAYS AS ((state = 'ended'::text)) STORED
)
WITH (fillfactor='70');
CREATE TABLE sluice.command (
    number bigint NOT NULL,
    wall_ns bigint NOT NULL,
    who text NOT NULL COLLATE pg_catalog."C",
    verb text NOT NULL COLLATE pg_catalog."C",
    args text NOT NULL COLLATE pg_catalog."C",
    key text COLLATE pg_catalog."C",
    answer text COLLATE pg_catalog."C"
);
CREATE TABLE sluice.event (
    number bigint NOT NULL,
    wall_ns bigint NOT NULL,
    run bigint,
    task bigint,
    kind text NOT NULL COLLATE pg_catalog."C",
    data text NOT NULL COLLATE pg_catalog."C",
    sum bigint NOT NULL
);
CREATE TABLE sluice.executor (
    name text NOT NULL COLLATE pg_catalog."C",
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
    reason text COLLATE pg_catalog."C"
)
WITH (fillfactor='50');
CREATE TABLE sluice.fragment (
    run bigint NOT NULL,
    number bigint NOT NULL,
    file text NOT NULL COLLATE pg_catalog."C",
    key text COLLATE pg_catalog."C",
    text bytea NOT NULL
);
CREATE TABLE sluice.gate (
    token bigint NOT NULL,
    place bigint NOT NULL,
    run bigint NOT NULL,
    task bigint NOT NULL,
    repo text NOT NULL COLLATE pg_catalog."C",
    tree text NOT NULL COLLATE pg_catalog."C",
    commit_id text NOT NULL COLLATE pg_catalog."C",
    command text NOT NULL COLLATE pg_catalog."C",
    verdict text NOT NULL COLLATE pg_catalog."C",
    tries bigint NOT NULL,
    wall_ns bigint NOT NULL,
    tested_by text NOT NULL COLLATE pg_catalog."C",
    output text COLLATE pg_catalog."C"
);
CREATE TABLE sluice.log (
    token bigint NOT NULL,
    worker text NOT NULL COLLATE pg_catalog."C",
    bytes bigint NOT NULL,
    start bigint NOT NULL,
    text bytea NOT NULL
);
CREATE TABLE sluice.peek (
    token bigint NOT NULL,
    worker text NOT NULL COLLATE pg_catalog."C",
    wanted timestamp with time zone NOT NULL,
    first bigint NOT NULL,
    start bigint NOT NULL,
    text bytea NOT NULL,
    ended boolean NOT NULL
);
CREATE TABLE sluice.run (
    number bigint NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    name text NOT NULL COLLATE pg_catalog."C",
    file text NOT NULL COLLATE pg_catalog."C",
    folder text NOT NULL COLLATE pg_catalog."C",
    processors bigint NOT NULL,
    created_ns bigint NOT NULL,
    rules bigint NOT NULL,
    base_gates boolean NOT NULL,
    not_before_ns bigint NOT NULL,
    worker text NOT NULL COLLATE pg_catalog."C",
    finished boolean NOT NULL,
    paused boolean NOT NULL,
    cancelled boolean NOT NULL,
    barrier bigint NOT NULL,
    completions bigint NOT NULL,
    owed bigint NOT NULL,
    stopped bigint NOT NULL,
    deadline_over boolean NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE sluice.run_limit (
    run bigint NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    max bigint NOT NULL,
    percent bigint NOT NULL
);
CREATE TABLE sluice.scheduler (
    one bigint NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    epoch bigint NOT NULL,
    holder text NOT NULL COLLATE pg_catalog."C",
    pid bigint NOT NULL,
    start_ticks bigint NOT NULL,
    host text NOT NULL COLLATE pg_catalog."C",
    boot_id text NOT NULL COLLATE pg_catalog."C",
    taken timestamp with time zone NOT NULL,
    backend_pid bigint NOT NULL,
    backend_start timestamp with time zone NOT NULL,
    lease_until timestamp with time zone NOT NULL,
    beat timestamp with time zone NOT NULL,
    listens boolean NOT NULL,
    commits bigint NOT NULL,
    commit_ns bigint NOT NULL,
    trouble text NOT NULL COLLATE pg_catalog."C",
    writes bigint NOT NULL,
    engine_ns bigint NOT NULL,
    wall_ns bigint NOT NULL,
    last_token bigint NOT NULL,
    last_event bigint NOT NULL,
    last_sum bigint NOT NULL,
    last_command bigint NOT NULL,
    last_run bigint NOT NULL,
    timeline text NOT NULL COLLATE pg_catalog."C",
    quiet_until timestamp with time zone NOT NULL,
    turn bigint DEFAULT 0 NOT NULL,
    CONSTRAINT scheduler_one_check CHECK ((one = 1))
)
WITH (fillfactor='10');
CREATE TABLE sluice.setting (
    name text NOT NULL COLLATE pg_catalog."C",
    value text NOT NULL COLLATE pg_catalog."C"
)
WITH (fillfactor='70');
CREATE TABLE sluice.task (
    key bigint NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL COLLATE pg_catalog."C",
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
    reason text COLLATE pg_catalog."C",
    feedback text COLLATE pg_catalog."C",
    carry text COLLATE pg_catalog."C",
    outputs text COLLATE pg_catalog."C",
    usd double precision NOT NULL,
    tokens bigint NOT NULL
)
WITH (fillfactor='70');
CREATE TABLE sluice.version (
    number bigint NOT NULL
);
CREATE TABLE sluice.work (
    token bigint NOT NULL,
    nonce text NOT NULL COLLATE pg_catalog."C",
    worker text NOT NULL COLLATE pg_catalog."C",
    instance text NOT NULL COLLATE pg_catalog."C",
    body text NOT NULL COLLATE pg_catalog."C",
    want text NOT NULL COLLATE pg_catalog."C",
    messages text COLLATE pg_catalog."C",
    state text NOT NULL COLLATE pg_catalog."C",
    report text COLLATE pg_catalog."C"
)
WITH (fillfactor='50');
CREATE TABLE sluice.worker (
    name text NOT NULL COLLATE pg_catalog."C",
    instance text NOT NULL COLLATE pg_catalog."C",
    home text NOT NULL COLLATE pg_catalog."C",
    host text NOT NULL COLLATE pg_catalog."C",
    boot_id text NOT NULL COLLATE pg_catalog."C",
    labels text NOT NULL COLLATE pg_catalog."C",
    slots bigint NOT NULL,
    proto bigint NOT NULL,
    version text NOT NULL COLLATE pg_catalog."C",
    state text NOT NULL COLLATE pg_catalog."C",
    wanted text NOT NULL COLLATE pg_catalog."C",
    since timestamp with time zone NOT NULL,
    beat timestamp with time zone NOT NULL,
    lease_until timestamp with time zone NOT NULL,
    generation bigint NOT NULL,
    trouble text NOT NULL COLLATE pg_catalog."C"
)
WITH (fillfactor='50');
INSERT INTO sluice.attempt VALUES (1, 1, 0, 1, 1, 1, 'ended', 1, 'elsewhere', 'bf6b253df2651861e7686640694c0f81', 23914, 3009290, 1795016169469262805, 1795016169486472625, 1795016171505511198, 'done', 'exit', NULL, 0, 0, 0, 0, 0, 0, false, '@HOST@', DEFAULT);
INSERT INTO sluice.command VALUES (1, 1795016169387762009, 'uid 0 pid 23745', 'submit', '{"verb":"submit","file":"plan.yaml","folder":"@FOLDER@","processors":2,"new":false,"worker":"@HOST@"}', NULL, '{"ok":true,"text":"run old is submitted","run":"old","number":1,"tasks":2}');
INSERT INTO sluice.command VALUES (2, 1795016170001593104, 'uid 0 pid 24033 on vm', 'hold', '{"key":"d7eb7cb5906576d5b9baf044b83b7641","verb":"hold","task":"second"}', 'd7eb7cb5906576d5b9baf044b83b7641', '{"ok":true,"text":"second is held","run":"old","task":"second"}');
INSERT INTO sluice.event VALUES (1, 1795016169387641329, NULL, NULL, 'scheduler', '{"epoch":1,"found":0,"adopted":0}', 6349457645605720308);
INSERT INTO sluice.event VALUES (2, 1795016169387754768, 1, NULL, 'run', '{"to":"submitted","id":"old","tasks":2}', 6248499771466925628);
INSERT INTO sluice.event VALUES (3, 1795016169387763691, NULL, NULL, 'order', '{"verb":"submit","by":"uid 0 pid 23745","answer":{"ok":true,"text":"run old is submitted","run":"old","number":1,"tasks":2}}', 5067417679390143837);
INSERT INTO sluice.event VALUES (4, 1795016169388185079, 1, 0, 'task', '{"task":"first","to":"ready"}', -5366076867392329331);
INSERT INTO sluice.event VALUES (5, 1795016169388186411, 1, 1, 'task', '{"task":"second","to":"waiting"}', 4549269168258845359);
INSERT INTO sluice.event VALUES (6, 1795016169469310946, 1, 0, 'task', '{"task":"first","from":"ready","to":"starting","attempt":1}', -3676987246314579919);
INSERT INTO sluice.event VALUES (7, 1795016169519169385, 1, 0, 'task', '{"task":"first","from":"starting","to":"running","attempt":1}', -8596905114522053790);
INSERT INTO sluice.event VALUES (8, 1795016170001602808, NULL, NULL, 'order', '{"verb":"hold","by":"uid 0 pid 24033 on vm","answer":{"ok":true,"text":"second is held","run":"old","task":"second"}}', 7135830350504040943);
INSERT INTO sluice.event VALUES (9, 1795016171510787271, 1, 0, 'attempt', '{"task":"first","attempt":1,"token":1,"outcome":"done","cause":"exit","code":0,"seconds":2.019038573}', 201980256589504083);
INSERT INTO sluice.event VALUES (10, 1795016171510846930, 1, 0, 'task', '{"task":"first","from":"running","to":"done","attempt":1}', 463482832246805780);
INSERT INTO sluice.event VALUES (11, 1795016171510848742, 1, 1, 'task', '{"task":"second","from":"waiting","to":"ready"}', -2176646248031870320);
INSERT INTO sluice.event VALUES (12, 1795016171510850555, 1, NULL, 'run', '{"to":"waiting","ready":1,"done":1}', -5772364680068635386);
INSERT INTO sluice.executor VALUES ('local:implement', 0, 0, false, -9223372036854775808, false, 0, false, 0, 0, -9223372036854775808, false, NULL);
INSERT INTO sluice.fragment VALUES (1, 0, 'plan.yaml', NULL, '\x736c756963653a20310a6e616d653a206f6c640a7461736b733a0a20202d207b69643a2066697273742c2072756e3a2022736c65657020323b206563686f206669727374203e3e20646f6e65227d0a20202d207b69643a207365636f6e642c206e656564733a205b66697273745d2c2072756e3a20226563686f207365636f6e64203e3e20646f6e65227d0a');
INSERT INTO sluice.log VALUES (1, '@HOST@', 0, 0, '\x');
INSERT INTO sluice.run VALUES (1, 'old', 'old', 'plan.yaml', '@FOLDER@', 2, 1795016169387720727, 1, true, 0, '@HOST@', false, false, false, 0, 0, 0, 0, false);
INSERT INTO sluice.scheduler VALUES (1, '88efd87947554493b2bd25594d568321', 1, '5c0ebce1-6035-427c-bc1a-b3d018718a05', 23745, 3009232, '@HOST@', 'ba73f398-9904-4a8c-83b8-2d4ae65844d1', '2026-11-18 15:36:09.304401+00', 23833, '2026-11-18 15:36:09.263181+00', '-infinity', '2026-11-18 15:36:11.513464+00', true, 4, 47486126, '', 6, 2125090550, 1795016171510865347, 1, 12, -5772364680068635386, 2, 1, '00000001', '-infinity', 4294967301);
INSERT INTO sluice.setting VALUES ('history/[]', '{"durations":[1,0.711109092,0],"outcomes":[1,0,0]}');
INSERT INTO sluice.setting VALUES ('history/implement', '{"durations":[1,0.711109092,0],"outcomes":[1,0,0],"costs":[1,0,0]}');
INSERT INTO sluice.setting VALUES ('history/["implement",null]', '{"durations":[1,0.711109092,0],"outcomes":[1,0,0]}');
INSERT INTO sluice.setting VALUES ('history/["implement",null,null,null]', '{"durations":[1,0.711109092,0],"outcomes":[1,0,0]}');
INSERT INTO sluice.task VALUES (4294967296, 'first', 'done', 0, 0, 1970908, 1, 0, 0, 0, 6, 1, NULL, 0, 1, 1, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, 0, 0);
INSERT INTO sluice.task VALUES (4294967297, 'second', 'ready', 1, 0, 2125072153, 16, 0, 0, 0, 7, 0, NULL, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL, NULL, NULL, 0, 0);
INSERT INTO sluice.version VALUES (2);
INSERT INTO sluice.worker VALUES ('@HOST@', 'cfabadd251b42a8aeea35471-1', '37646af6242850b30a658ac0f5bc4605', '@HOST@', 'ba73f398-9904-4a8c-83b8-2d4ae65844d1', '@HOST@,any', 1000000, 1, '0.1.0', 'gone', '', '2026-11-18 15:36:09.457937+00', '2026-11-18 15:36:11.530632+00', '2026-11-18 15:36:11.530632+00', 1, '');
SELECT pg_catalog.setval('sluice.ask_number_seq', 1, true);
ALTER TABLE ONLY sluice.ask
    ADD CONSTRAINT ask_pkey PRIMARY KEY (number);
ALTER TABLE ONLY sluice.attempt
    ADD CONSTRAINT attempt_pkey PRIMARY KEY (token);
ALTER TABLE ONLY sluice.attempt
    ADD CONSTRAINT attempt_run_task_number_key UNIQUE (run, task, number);
ALTER TABLE ONLY sluice.command
    ADD CONSTRAINT command_pkey PRIMARY KEY (number);
ALTER TABLE ONLY sluice.event
    ADD CONSTRAINT event_pkey PRIMARY KEY (number);
ALTER TABLE ONLY sluice.executor
    ADD CONSTRAINT executor_pkey PRIMARY KEY (name);
ALTER TABLE ONLY sluice.fragment
    ADD CONSTRAINT fragment_pkey PRIMARY KEY (run, number);
ALTER TABLE ONLY sluice.gate
    ADD CONSTRAINT gate_pkey PRIMARY KEY (token, place);
ALTER TABLE ONLY sluice.log
    ADD CONSTRAINT log_pkey PRIMARY KEY (token);
ALTER TABLE ONLY sluice.peek
    ADD CONSTRAINT peek_pkey PRIMARY KEY (token);
ALTER TABLE ONLY sluice.run
    ADD CONSTRAINT run_id_key UNIQUE (id);
ALTER TABLE ONLY sluice.run_limit
    ADD CONSTRAINT run_limit_pkey PRIMARY KEY (run, name);
ALTER TABLE ONLY sluice.run
    ADD CONSTRAINT run_pkey PRIMARY KEY (number);
ALTER TABLE ONLY sluice.scheduler
    ADD CONSTRAINT scheduler_pkey PRIMARY KEY (one);
ALTER TABLE ONLY sluice.setting
    ADD CONSTRAINT setting_pkey PRIMARY KEY (name);
ALTER TABLE ONLY sluice.task
    ADD CONSTRAINT task_pkey PRIMARY KEY (key);
ALTER TABLE ONLY sluice.work
    ADD CONSTRAINT work_pkey PRIMARY KEY (token);
ALTER TABLE ONLY sluice.worker
    ADD CONSTRAINT worker_pkey PRIMARY KEY (name);
CREATE INDEX attempt_open ON sluice.attempt USING btree (token) WHERE (NOT over);
CREATE INDEX command_key ON sluice.command USING hash (key) WHERE (key IS NOT NULL);
CREATE INDEX command_open ON sluice.command USING btree (number) WHERE (answer IS NULL);
CREATE INDEX event_run ON sluice.event USING btree (run, number);
CREATE INDEX gate_repo ON sluice.gate USING hash (repo);
CREATE INDEX gate_run ON sluice.gate USING btree (run, task);
CREATE INDEX work_worker ON sluice.work USING btree (worker);
