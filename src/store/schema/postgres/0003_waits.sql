-- A batch changes each row that it means to, or none at all.
CREATE FUNCTION batch_fits(what text, seen bigint, wanted bigint)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF seen <> wanted THEN
        RAISE EXCEPTION USING
            ERRCODE = CASE what WHEN 'scheduler' THEN 'SL002' ELSE 'SL001' END,
            MESSAGE = format('a row of %s contradicts the store', what);
    END IF;
END
$$;

-- A turn of a scheduler waits for the disk only if it says so. One that takes
-- requests, or answers those of clients, need not. Once a scheduler has stored
-- what follows from a request, that it was taken is on disk, too; until then it
-- knows the request by its number, if a crash of the server makes it come again;
-- and a client hears of such a crash itself. After a turn whose result was lost,
-- requests that it has taken come again. All else is as in step 2.
CREATE OR REPLACE FUNCTION scheduler_turn(said jsonb) RETURNS json
LANGUAGE plpgsql AS $$
DECLARE
    asks json;
    lease bigint := worker_lease_ms();
    margin bigint := worker_margin_ms();
    third interval := lease / 3.0 * interval '1 millisecond';
    late boolean := said -> 'patient' IS NULL AND EXISTS (SELECT 1 FROM worker
        WHERE state IN ('up', 'draining') AND lease_until
            + margin * interval '1 millisecond' < clock_timestamp());
    asked boolean := said -> 'again' IS NOT NULL
        OR EXISTS (SELECT 1 FROM ask WHERE taken IS NULL);
BEGIN
    IF said -> 'changes' IS NOT NULL OR late OR asked THEN
        IF NOT scheduler_change(said) THEN
            RETURN json_build_object('superseded', true);
        END IF;
        IF late THEN
            PERFORM scheduler_lose(NULL);
        ELSIF said -> 'durable' IS NULL THEN
            PERFORM set_config('synchronous_commit', 'off', true);
        END IF;
        IF asked THEN
            WITH took AS (
                UPDATE ask SET taken = (said ->> 'epoch')::bigint
                WHERE taken IS NULL OR (said -> 'again' IS NOT NULL
                    AND taken = (said ->> 'epoch')::bigint
                    AND answer IS NULL)
                RETURNING *
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

-- A brief turn of a scheduler that was told of requests, and of nothing else. A
-- scheduler that was superseded takes nothing.
CREATE FUNCTION scheduler_take(said jsonb) RETURNS json
LANGUAGE plpgsql AS $$
DECLARE
    asks json;
BEGIN
    WITH took AS (
        UPDATE ask SET taken = scheduler.epoch FROM scheduler
        WHERE ask.taken IS NULL AND scheduler.epoch = (said ->> 'epoch')::bigint
        RETURNING ask.*
    ) SELECT json_agg(json_build_object('number', number, 'session', session,
        'worker', worker, 'token', token, 'who', who, 'request', request)
        ORDER BY number) INTO asks FROM took;
    PERFORM set_config('synchronous_commit', 'off', true);
    RETURN json_build_object('brief', true, 'asks',
        coalesce(asks, '[]'::json));
END
$$;
