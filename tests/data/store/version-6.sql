-- The same of version 6, by the program of the commit before version 7. Attempts
-- have no nonce: the test writes their records.
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
INSERT INTO "attempt" VALUES(1,1,0,1,1,'ended',1,'@BOOT@',21344,5963423,1794942268794847692,1794942268807772980,1794942268844462409,'refused','exit','exit code 75',75,0,10,20,1.5,0,1,'',0);
INSERT INTO "attempt" VALUES(2,1,1,1,1,'ended',1,'@BOOT@',21345,5963423,1794942268794851247,1794942268818777179,1794942268846668632,'blocked','exit','exit code 30',30,0,0,0,0.0,0,2,'',0);
INSERT INTO "attempt" VALUES(3,1,3,1,1,'ended',1,'@BOOT@',21346,5963423,1794942268794852279,1794942268807893019,1794942269350973784,'failed','exit','exit code 1',1,0,0,0,0.0,0,3,'',0);
INSERT INTO "attempt" VALUES(4,1,0,2,1,'ended',1,'@BOOT@',21344,5963423,1794942268945765848,1794942268954916428,1794942268960184409,'done','exit',NULL,0,0,10,20,1.5,0,1,'',0);
INSERT INTO "attempt" VALUES(5,1,2,1,1,'running',1,'@BOOT@',21344,5963423,1794942268960399940,1794942268986731391,0,NULL,NULL,NULL,-1,0,0,0,0.0,0,1,'',0);
CREATE TABLE command (
    number INTEGER PRIMARY KEY,
    wall_ns INTEGER NOT NULL,
    who TEXT NOT NULL,
    verb TEXT NOT NULL,
    args TEXT NOT NULL,
    answer TEXT
, key TEXT) STRICT;
INSERT INTO "command" VALUES(1,1794942268794836956,'uid 0 pid 21322','submit','{"verb":"submit","file":"plan.yaml","folder":"@FOLDER@","processors":2,"new":false}','{"ok":true,"text":"run old is submitted","run":"old","number":1,"tasks":5}',NULL);
CREATE TABLE event (
    number INTEGER PRIMARY KEY,
    wall_ns INTEGER NOT NULL,
    run INTEGER,
    task INTEGER,
    kind TEXT NOT NULL,
    data TEXT NOT NULL,
    sum INTEGER NOT NULL
) STRICT;
INSERT INTO "event" VALUES(1,1794942268794703217,NULL,NULL,'scheduler','{"epoch":1,"found":0,"adopted":0}',-8245263613518155577);
INSERT INTO "event" VALUES(2,1794942268794830446,1,NULL,'run','{"to":"submitted","id":"old","tasks":5}',-3942854594260314207);
INSERT INTO "event" VALUES(3,1794942268794838428,NULL,NULL,'order','{"verb":"submit","by":"uid 0 pid 21322","answer":{"ok":true,"text":"run old is submitted","run":"old","number":1,"tasks":5}}',6134703025674274813);
INSERT INTO "event" VALUES(4,1794942268794854062,1,0,'task','{"task":"first","to":"starting","attempt":1}',1072580452037410753);
INSERT INTO "event" VALUES(5,1794942268794854863,1,1,'task','{"task":"bad","to":"starting","attempt":1}',1300064982788682457);
INSERT INTO "event" VALUES(6,1794942268794855634,1,2,'task','{"task":"long","to":"waiting"}',2273255926626470897);
INSERT INTO "event" VALUES(7,1794942268794856245,1,3,'task','{"task":"again","to":"starting","attempt":1}',-5608916652985078086);
INSERT INTO "event" VALUES(8,1794942268794857387,1,4,'task','{"task":"last","to":"waiting"}',-1336654074034279740);
INSERT INTO "event" VALUES(9,1794942268837896896,1,0,'task','{"task":"first","from":"starting","to":"running","attempt":1}',127881005463328281);
INSERT INTO "event" VALUES(10,1794942268837898509,1,1,'task','{"task":"bad","from":"starting","to":"running","attempt":1}',-3002177642684702053);
INSERT INTO "event" VALUES(11,1794942268837899580,1,3,'task','{"task":"again","from":"starting","to":"running","attempt":1}',-3924879781296826910);
INSERT INTO "event" VALUES(12,1794942268844608015,1,0,'attempt','{"task":"first","attempt":1,"token":1,"outcome":"refused","cause":"exit","code":75,"seconds":0.036689429,"reason":"exit code 75"}',-3779302736600155951);
INSERT INTO "event" VALUES(13,1794942268844624330,1,0,'task','{"task":"first","from":"running","to":"ready","attempt":1,"reason":"exit code 75"}',3515603661685610189);
INSERT INTO "event" VALUES(14,1794942268846793638,1,1,'attempt','{"task":"bad","attempt":1,"token":2,"outcome":"blocked","cause":"exit","code":30,"seconds":0.027891453,"reason":"exit code 30"}',-5406976098582324479);
INSERT INTO "event" VALUES(15,1794942268846807269,1,1,'task','{"task":"bad","from":"running","to":"parked","attempt":1,"reason":"exit code 30"}',3803700528959938406);
INSERT INTO "event" VALUES(16,1794942268945781702,1,0,'task','{"task":"first","from":"ready","to":"starting","attempt":2}',5770060486850283417);
INSERT INTO "event" VALUES(17,1794942268960342004,1,0,'attempt','{"task":"first","attempt":2,"token":4,"outcome":"done","cause":"exit","code":0,"seconds":0.005267981}',8118585281146173789);
INSERT INTO "event" VALUES(18,1794942268960403705,1,0,'task','{"task":"first","from":"starting","to":"done","attempt":2}',-6819298655649125420);
INSERT INTO "event" VALUES(19,1794942268960405077,1,2,'task','{"task":"long","from":"waiting","to":"starting","attempt":1}',-1293951293960096955);
INSERT INTO "event" VALUES(20,1794942269011862557,1,2,'task','{"task":"long","from":"starting","to":"running","attempt":1}',5612636692647396939);
INSERT INTO "event" VALUES(21,1794942269351209114,1,3,'attempt','{"task":"again","attempt":1,"token":3,"outcome":"failed","cause":"exit","code":1,"seconds":0.543080765,"reason":"exit code 1"}',4540972069546277456);
INSERT INTO "event" VALUES(22,1794942269351236085,1,3,'task','{"task":"again","from":"running","to":"waiting","attempt":1,"reason":"exit code 1"}',-2610637365809379717);
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
INSERT INTO "executor" VALUES('a',0,0,163093138,0,0,0,0,0,-9223372036854775808,0,0,NULL);
INSERT INTO "executor" VALUES('local:implement',0,0,-9223372036854775808,0,0,0,0,0,-9223372036854775808,0,0,NULL);
CREATE TABLE fragment (
    run INTEGER NOT NULL,
    number INTEGER NOT NULL,
    file TEXT NOT NULL,
    text BLOB NOT NULL,
    PRIMARY KEY (run, number)
) STRICT;
INSERT INTO "fragment" VALUES(1,0,'plan.yaml',X'736C756963653A20310A6E616D653A206F6C640A6C696D6974733A207B73657373696F6E733A20337D0A64656661756C74733A207B72657472793A207B6D61783A20312C206261636B6F66663A203230306D737D7D0A70726F7669646572733A207B613A207B6261636B6F66663A203130306D737D7D0A7461736B733A0A20202D207B69643A2066697273742C2070726F76696465723A20612C2072756E3A20276563686F20227B5C2275736167655C223A207B5C227573645C223A20312E352C205C22696E7075745F746F6B656E735C223A2031302C205C226F75747075745F746F6B656E735C223A2032307D7D22203E24534C554943455F524553554C543B205B202D652072656675736564205D207C7C207B20746F75636820726566757365643B20657869742037353B207D277D0A20202D207B69643A206261642C2072756E3A202765786974203330277D0A20202D207B69643A206C6F6E672C206E656564733A205B66697273745D2C2072756E3A20277768696C65205B2021202D6520676F205D3B20646F20736C65657020302E30353B20646F6E65277D0A20202D207B69643A20616761696E2C2072756E3A2027736C65657020302E353B205B2024534C554943455F415454454D5054203D2032205D277D0A20202D207B69643A206C6173742C206E656564733A205B6C6F6E675D2C2072756E3A20276563686F20646F6E65277D0A');
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
, rules INTEGER NOT NULL DEFAULT 0, base_gates INTEGER NOT NULL DEFAULT 0, owed INTEGER NOT NULL DEFAULT 0) STRICT;
INSERT INTO "run" VALUES(1,'old','old','plan.yaml','@FOLDER@',2,1794942268794801193,0,0,0,0,0,1,1,0);
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
INSERT INTO "scheduler" VALUES(1,1,21322,5963409,'host','@BOOT@',9,569712013,1794942269351249795,5,22,-2610637365809379717,1,1,'0123456789abcdef0123456789abcdef');
CREATE TABLE setting (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "setting" VALUES('history/["implement",null,null,null]','{"durations":[2,-2.41300371,6.67027027],"outcomes":[3,1,0]}');
INSERT INTO "setting" VALUES('history/["implement",null]','{"durations":[2,-2.41300371,6.67027027],"outcomes":[3,1,0]}');
INSERT INTO "setting" VALUES('history/[]','{"durations":[2,-2.41300371,6.67027027],"outcomes":[3,1,0]}');
INSERT INTO "setting" VALUES('history/implement','{"durations":[2,-2.41300371,6.67027027],"outcomes":[3,1,0],"costs":[1,1.5,30]}');
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
INSERT INTO "task" VALUES(4294967296,'first','done',0,0,13282860,1,0,0,0,12,4,NULL,0,1,2,0,0,0,NULL,NULL,NULL,3.0,60,NULL);
INSERT INTO "task" VALUES(4294967297,'bad','parked',0,1,13282860,1,0,0,0,10,2,NULL,0,1,1,0,0,0,NULL,'exit code 30',NULL,0.0,0,'{"after":"blocked","lacks":"answer","reason":"exit code 30","question":"exit code 30"}');
INSERT INTO "task" VALUES(4294967298,'long','running',512,0,178860736,17,0,0,0,14,5,2,0,1,1,0,0,0,NULL,NULL,NULL,0.0,0,NULL);
INSERT INTO "task" VALUES(4294967299,'again','waiting',514,0,13282860,1,769701568,0,0,15,3,NULL,0,1,1,1,0,0,NULL,'exit code 1',NULL,0.0,0,'{"after":"failed","reason":"exit code 1"}');
INSERT INTO "task" VALUES(4294967300,'last','waiting',0,0,0,0,0,0,0,5,0,NULL,0,0,0,0,0,0,NULL,NULL,NULL,0.0,0,NULL);
CREATE INDEX attempt_open ON attempt (token) WHERE state <> 'ended';
CREATE INDEX command_open ON command (number) WHERE answer IS NULL;
CREATE INDEX event_run ON event (run);
CREATE INDEX command_key ON command (key) WHERE key IS NOT NULL;
CREATE INDEX gate_repo ON gate (repo);
CREATE INDEX gate_run ON gate (run, task);
COMMIT;
PRAGMA application_id = 1936487785;
PRAGMA user_version = 6;
