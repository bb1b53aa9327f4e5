-- Two runs of version 5, the second one with a task that waits for an answer.
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
CREATE TABLE attempt (
    token INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    task INTEGER NOT NULL,
    number INTEGER NOT NULL,
    task_count INTEGER NOT NULL,
    state TEXT NOT NULL,
    epoch INTEGER NOT NULL,
    boot_id TEXT NOT NULL,
    pid INTEGER NOT NULL,
    start_ticks INTEGER NOT NULL,
    claimed_ns INTEGER NOT NULL,
    begun_ns INTEGER NOT NULL,
    ended_ns INTEGER NOT NULL,
    outcome TEXT,
    cause TEXT,
    reason TEXT,
    code INTEGER NOT NULL,
    signal INTEGER NOT NULL,
    input_tokens INTEGER NOT NULL,
    output_tokens INTEGER NOT NULL,
    usd REAL NOT NULL, cached_tokens INTEGER NOT NULL DEFAULT 0, slot INTEGER NOT NULL DEFAULT 0, nonce TEXT NOT NULL DEFAULT '', confined INTEGER NOT NULL DEFAULT 0,
    UNIQUE (run, task, number)
) STRICT;
INSERT INTO "attempt" VALUES(1,1,0,1,1,'ended',1,'@BOOT@',28105,4857456,1794931209126903881,1794931209135115028,1794931209245539053,'done','exit',NULL,0,0,100,20,0.25,0,1,'547188dce4a57a9a56168aa3fc74d4af',0);
INSERT INTO "attempt" VALUES(2,1,1,1,1,'ended',1,'@BOOT@',28105,4857456,1794931209257200079,1794931209286899503,1794931209703059345,'done','exit',NULL,0,0,0,0,0.0,0,1,'a03912ef15b3dbce3c1223d6e0d5f5a8',0);
INSERT INTO "attempt" VALUES(3,2,1,1,1,'ended',2,'@BOOT@',28145,4857531,1794931209880636511,1794931209883301868,1794931209939009162,'done','exit',NULL,0,0,0,0,0.0,0,1,'080648368d345c3fab86b36d36453754',0);
INSERT INTO "attempt" VALUES(4,2,2,1,1,'ended',2,'@BOOT@',28147,4857531,1794931209880639535,1794931209883811126,1794931209884852826,'blocked','exit','exit code 30',30,0,0,0,0.0,0,2,'6c68b4801f250f89a77a79105d890118',0);
INSERT INTO "attempt" VALUES(5,2,0,1,1,'ended',2,'@BOOT@',28147,4857531,1794931209884985103,1794931209886081415,1794931209939866879,'done','exit',NULL,0,0,0,0,0.0,0,2,'3198e7c10a460fb5336f1d1cbc03b424',0);
CREATE TABLE command (
    number INTEGER PRIMARY KEY,
    wall_ns INTEGER NOT NULL,
    who TEXT NOT NULL,
    verb TEXT NOT NULL,
    args TEXT NOT NULL,
    answer TEXT
, key TEXT) STRICT;
INSERT INTO "command" VALUES(1,1794931209126891663,'uid 0 pid 28082','submit','{"verb":"submit","file":"first.yaml","folder":"@FOLDER@","processors":2,"new":false}','{"ok":true,"text":"run first is submitted","run":"first","number":1,"tasks":2}',NULL);
INSERT INTO "command" VALUES(2,1794931209880627197,'uid 0 pid 28134','submit','{"verb":"submit","file":"plan.yaml","folder":"@FOLDER@","processors":2,"new":false}','{"ok":true,"text":"run old is submitted","run":"old","number":2,"tasks":4}',NULL);
CREATE TABLE event (
    number INTEGER PRIMARY KEY,
    wall_ns INTEGER NOT NULL,
    run INTEGER,
    task INTEGER,
    kind TEXT NOT NULL,
    data TEXT NOT NULL,
    sum INTEGER NOT NULL
) STRICT;
INSERT INTO "event" VALUES(1,1794931209126712696,NULL,NULL,'scheduler','{"epoch":1,"found":0,"adopted":0}',4116341708150211039);
INSERT INTO "event" VALUES(2,1794931209126883531,1,NULL,'run','{"to":"submitted","id":"first","tasks":2}',7641642999468298629);
INSERT INTO "event" VALUES(3,1794931209126893826,NULL,NULL,'order','{"verb":"submit","by":"uid 0 pid 28082","answer":{"ok":true,"text":"run first is submitted","run":"first","number":1,"tasks":2}}',-951388489204588819);
INSERT INTO "event" VALUES(4,1794931209126909880,1,0,'task','{"task":"fast","to":"starting","attempt":1}',-524285092663598488);
INSERT INTO "event" VALUES(5,1794931209126911252,1,1,'task','{"task":"slow","to":"waiting"}',6127364818970508333);
INSERT INTO "event" VALUES(6,1794931209174710301,1,0,'task','{"task":"fast","from":"starting","to":"running","attempt":1}',-7106765057519921486);
INSERT INTO "event" VALUES(7,1794931209257178447,1,0,'attempt','{"task":"fast","attempt":1,"token":1,"outcome":"done","cause":"exit","code":0,"seconds":0.110424025}',-3895286648400797492);
INSERT INTO "event" VALUES(8,1794931209257203834,1,0,'task','{"task":"fast","from":"running","to":"done","attempt":1}',-3499443854428901614);
INSERT INTO "event" VALUES(9,1794931209257205126,1,1,'task','{"task":"slow","from":"waiting","to":"starting","attempt":1}',-9079075200108597386);
INSERT INTO "event" VALUES(10,1794931209332992919,1,1,'task','{"task":"slow","from":"starting","to":"running","attempt":1}',3680778598007605010);
INSERT INTO "event" VALUES(11,1794931209722811083,1,1,'attempt','{"task":"slow","attempt":1,"token":2,"outcome":"done","cause":"exit","code":0,"seconds":0.416159842}',-5389927017533467250);
INSERT INTO "event" VALUES(12,1794931209722831163,1,1,'task','{"task":"slow","from":"running","to":"done","attempt":1}',-5585454781669969007);
INSERT INTO "event" VALUES(13,1794931209722834268,1,NULL,'run','{"to":"finished","done":2}',2471290812978934315);
INSERT INTO "event" VALUES(14,1794931209880542280,NULL,NULL,'scheduler','{"epoch":2,"found":0,"adopted":0}',6260647866170766484);
INSERT INTO "event" VALUES(15,1794931209880623531,2,NULL,'run','{"to":"submitted","id":"old","tasks":4}',-2448241818510000302);
INSERT INTO "event" VALUES(16,1794931209880628669,NULL,NULL,'order','{"verb":"submit","by":"uid 0 pid 28134","answer":{"ok":true,"text":"run old is submitted","run":"old","number":2,"tasks":4}}',-4166015497539430840);
INSERT INTO "event" VALUES(17,1794931209880641498,2,0,'task','{"task":"known","to":"ready"}',5623371289519461161);
INSERT INTO "event" VALUES(18,1794931209880642499,2,1,'task','{"task":"own","to":"starting","attempt":1}',-8433552520965106207);
INSERT INTO "event" VALUES(19,1794931209880643090,2,2,'task','{"task":"bad","to":"starting","attempt":1}',-7158140969330203366);
INSERT INTO "event" VALUES(20,1794931209880643932,2,3,'task','{"task":"last","to":"waiting"}',4950863189090836213);
INSERT INTO "event" VALUES(21,1794931209884946776,2,2,'attempt','{"task":"bad","attempt":1,"token":4,"outcome":"blocked","cause":"exit","code":30,"seconds":0.0010417,"reason":"exit code 30"}',1381519721230588787);
INSERT INTO "event" VALUES(22,1794931209884988438,2,2,'task','{"task":"bad","from":"starting","to":"parked","attempt":1,"reason":"exit code 30"}',-1549678437515621404);
INSERT INTO "event" VALUES(23,1794931209884989840,2,0,'task','{"task":"known","from":"ready","to":"starting","attempt":1}',888106699243097025);
INSERT INTO "event" VALUES(24,1794931209910575622,2,1,'task','{"task":"own","from":"starting","to":"running","attempt":1}',4317407106298782278);
INSERT INTO "event" VALUES(25,1794931209930887033,2,0,'task','{"task":"known","from":"starting","to":"running","attempt":1}',-3959015155112410794);
INSERT INTO "event" VALUES(26,1794931209939193366,2,1,'attempt','{"task":"own","attempt":1,"token":3,"outcome":"done","cause":"exit","code":0,"seconds":0.055707294}',-8881672189898690439);
INSERT INTO "event" VALUES(27,1794931209939209661,2,1,'task','{"task":"own","from":"running","to":"done","attempt":1}',5012014888164028010);
INSERT INTO "event" VALUES(28,1794931209940000267,2,0,'attempt','{"task":"known","attempt":1,"token":5,"outcome":"done","cause":"exit","code":0,"seconds":0.053785464}',2026827168111378210);
INSERT INTO "event" VALUES(29,1794931209940092845,2,0,'task','{"task":"known","from":"running","to":"done","attempt":1}',966826738649568164);
INSERT INTO "event" VALUES(30,1794931209940094237,2,NULL,'run','{"to":"waiting","waiting":1,"done":2,"parked":1}',984412136055811369);
CREATE TABLE "executor" (
    name TEXT PRIMARY KEY,
    steps INTEGER NOT NULL,
    steps_kept INTEGER NOT NULL,
    shut_until_ns INTEGER NOT NULL,
    usage INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    circuit_open INTEGER NOT NULL,
    probe_token INTEGER NOT NULL,
    probe_steps INTEGER NOT NULL,
    probe_at_ns INTEGER NOT NULL,
    confirming INTEGER NOT NULL
, stopped INTEGER NOT NULL DEFAULT 0, reason TEXT) STRICT, WITHOUT ROWID;
INSERT INTO "executor" VALUES('local:implement',0,0,-9223372036854775808,0,0,0,0,0,-9223372036854775808,0,0,NULL);
CREATE TABLE fragment (
    run INTEGER NOT NULL,
    number INTEGER NOT NULL,
    file TEXT NOT NULL,
    text BLOB NOT NULL,
    PRIMARY KEY (run, number)
) STRICT;
INSERT INTO "fragment" VALUES(1,0,'first.yaml',X'736C756963653A20310A6E616D653A2066697273740A7461736B733A0A20202D207B69643A20666173742C2072756E3A2027736C65657020302E313B206563686F20227B5C2275736167655C223A207B5C227573645C223A20302E32352C205C22696E7075745F746F6B656E735C223A203130302C205C226F75747075745F746F6B656E735C223A2032307D7D22203E202224534C554943455F524553554C5422277D0A20202D207B69643A20736C6F772C2072756E3A20736C65657020302E342C206E656564733A205B666173745D7D0A');
INSERT INTO "fragment" VALUES(2,0,'plan.yaml',X'736C756963653A20310A6E616D653A206F6C640A7461736B733A0A20202D207B69643A206B6E6F776E2C2072756E3A20736C65657020302E30357D0A20202D207B69643A206F776E2C2072756E3A20736C65657020302E30352C20657374696D6174653A20356D7D0A20202D207B69643A206261642C2072756E3A2074657374202D6520676F207C7C20657869742033307D0A20202D207B69643A206C6173742C2072756E3A20736C65657020302E30352C206E656564733A205B6261645D7D0A');
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
CREATE TABLE run (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    name TEXT NOT NULL,
    file TEXT NOT NULL,
    folder TEXT NOT NULL,
    processors INTEGER NOT NULL,
    created_ns INTEGER NOT NULL,
    finished INTEGER NOT NULL,
    paused INTEGER NOT NULL,
    cancelled INTEGER NOT NULL,
    barrier INTEGER NOT NULL,
    completions INTEGER NOT NULL
, rules INTEGER NOT NULL DEFAULT 0, base_gates INTEGER NOT NULL DEFAULT 0) STRICT;
INSERT INTO "run" VALUES(1,'first','first','first.yaml','@FOLDER@',2,1794931209126834818,1,0,0,0,0,1,1);
INSERT INTO "run" VALUES(2,'old','old','plan.yaml','@FOLDER@',2,1794931209880593026,0,0,0,0,0,1,1);
CREATE TABLE run_limit (
    run INTEGER NOT NULL,
    name TEXT NOT NULL,
    max INTEGER NOT NULL,
    percent INTEGER NOT NULL,
    PRIMARY KEY (run, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE scheduler (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    epoch INTEGER NOT NULL,
    pid INTEGER NOT NULL,
    start_ticks INTEGER NOT NULL,
    host TEXT NOT NULL,
    boot_id TEXT NOT NULL,
    writes INTEGER NOT NULL,
    engine_ns INTEGER NOT NULL,
    wall_ns INTEGER NOT NULL,
    last_token INTEGER NOT NULL,
    last_event INTEGER NOT NULL,
    last_sum INTEGER NOT NULL,
    last_command INTEGER NOT NULL,
    last_run INTEGER NOT NULL
, id TEXT NOT NULL DEFAULT '') STRICT;
INSERT INTO "scheduler" VALUES(1,2,28134,4857529,'host','@BOOT@',13,836314945,1794931209940098253,5,30,984412136055811369,2,2,'0123456789abcdef0123456789abcdef');
CREATE TABLE setting (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "setting" VALUES('expected/2','{"implement":[263291934,1250,60]}');
INSERT INTO "setting" VALUES('history/implement','{"count":4,"seconds":0.636076625,"usd":0.25,"tokens":120}');
CREATE TABLE "task" (
    key INTEGER PRIMARY KEY,
    run INTEGER GENERATED ALWAYS AS (key >> 32) VIRTUAL,
    ix INTEGER GENERATED ALWAYS AS (key & 4294967295) VIRTUAL,
    id TEXT NOT NULL,
    state TEXT NOT NULL,
    flags INTEGER NOT NULL,
    parked INTEGER NOT NULL,
    ready_ns INTEGER NOT NULL,
    ready_seq INTEGER NOT NULL,
    until_ns INTEGER NOT NULL,
    started_ns INTEGER NOT NULL,
    service_ns INTEGER NOT NULL,
    version INTEGER NOT NULL,
    token INTEGER NOT NULL,
    leader INTEGER,
    place INTEGER NOT NULL,
    attempts INTEGER NOT NULL,
    number INTEGER NOT NULL,
    tries INTEGER NOT NULL,
    reworks INTEGER NOT NULL,
    checkpoints INTEGER NOT NULL,
    cause INTEGER,
    reason TEXT,
    feedback TEXT,
    usd REAL NOT NULL,
    tokens INTEGER NOT NULL
, carry TEXT) STRICT;
INSERT INTO "task" VALUES(4294967296,'fast','done',0,0,23076798,1,0,0,0,4,1,NULL,0,1,1,0,0,0,NULL,NULL,NULL,0.25,120,NULL);
INSERT INTO "task" VALUES(4294967297,'slow','done',0,0,153425504,7,0,0,0,7,2,NULL,0,1,1,0,0,0,NULL,NULL,NULL,0.0,0,NULL);
INSERT INTO "task" VALUES(8589934592,'known','done',0,0,776826052,1,0,0,0,10,5,NULL,0,1,1,0,0,0,NULL,NULL,NULL,0.0,0,NULL);
INSERT INTO "task" VALUES(8589934593,'own','done',0,0,776826052,1,0,0,0,9,3,NULL,0,1,1,0,0,0,NULL,NULL,NULL,0.0,0,NULL);
INSERT INTO "task" VALUES(8589934594,'bad','parked',0,1,776826052,1,0,0,0,5,4,NULL,0,1,1,0,0,0,NULL,'exit code 30',NULL,0.0,0,'{"after":"blocked","lacks":"answer","reason":"exit code 30","question":"exit code 30"}');
INSERT INTO "task" VALUES(8589934595,'last','waiting',0,0,0,0,0,0,0,4,0,NULL,0,0,0,0,0,0,NULL,NULL,NULL,0.0,0,NULL);
CREATE INDEX attempt_open ON attempt (token) WHERE state <> 'ended';
CREATE INDEX command_open ON command (number) WHERE answer IS NULL;
CREATE INDEX event_run ON event (run);
CREATE INDEX command_key ON command (key) WHERE key IS NOT NULL;
CREATE INDEX gate_repo ON gate (repo);
CREATE INDEX gate_run ON gate (run, task);
COMMIT;
PRAGMA application_id = 1936487785;
PRAGMA user_version = 5;
