-- The same of version 7, by the program of the commit before version 8. Attempts
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
INSERT INTO "attempt" VALUES(1,1,0,1,1,'ended',1,'@BOOT@',20229,529311,1794991369701276655,1794991369702436986,1794991369705437422,'refused','exit','exit code 75',75,0,10,20,1.5,0,1,'',0);
INSERT INTO "attempt" VALUES(2,1,1,1,1,'ended',1,'@BOOT@',20230,529311,1794991369701278968,1794991369702700889,1794991369703636422,'blocked','exit','exit code 30',30,0,0,0,0.0,0,2,'',0);
INSERT INTO "attempt" VALUES(3,1,3,1,1,'ended',1,'@BOOT@',20231,529311,1794991369701279880,1794991369702657871,1794991370204950372,'failed','exit','exit code 1',1,0,0,0,0.0,0,3,'',0);
INSERT INTO "attempt" VALUES(4,1,0,2,1,'ended',1,'@BOOT@',20229,529311,1794991369806029704,1794991369807235759,1794991369808871173,'done','exit',NULL,0,0,10,20,1.5,0,1,'',0);
INSERT INTO "attempt" VALUES(5,1,2,1,1,'running',1,'@BOOT@',20229,529311,1794991369809119713,1794991369815022158,0,NULL,NULL,NULL,-1,0,0,0,0.0,0,1,'',0);
CREATE TABLE command (
    number INTEGER PRIMARY KEY,
    wall_ns INTEGER NOT NULL,
    who TEXT NOT NULL,
    verb TEXT NOT NULL,
    args TEXT NOT NULL,
    answer TEXT
, key TEXT) STRICT;
INSERT INTO "command" VALUES(1,1794991369701265067,'uid 0 pid 20219','submit','{"verb":"submit","file":"plan.yaml","folder":"@FOLDER@","processors":2,"new":false}','{"ok":true,"text":"run old is submitted","run":"old","number":1,"tasks":5}',NULL);
CREATE TABLE event (
    number INTEGER PRIMARY KEY,
    wall_ns INTEGER NOT NULL,
    run INTEGER,
    task INTEGER,
    kind TEXT NOT NULL,
    data TEXT NOT NULL,
    sum INTEGER NOT NULL
) STRICT;
INSERT INTO "event" VALUES(1,1794991369701148384,NULL,NULL,'scheduler','{"epoch":1,"found":0,"adopted":0}',-8502385045298941487);
INSERT INTO "event" VALUES(2,1794991369701258157,1,NULL,'run','{"to":"submitted","id":"old","tasks":5}',-1998528565950549403);
INSERT INTO "event" VALUES(3,1794991369701266209,NULL,NULL,'order','{"verb":"submit","by":"uid 0 pid 20219","answer":{"ok":true,"text":"run old is submitted","run":"old","number":1,"tasks":5}}',7160704613689367238);
INSERT INTO "event" VALUES(4,1794991369701281893,1,0,'task','{"task":"first","to":"starting","attempt":1}',504773773714910325);
INSERT INTO "event" VALUES(5,1794991369701282824,1,1,'task','{"task":"bad","to":"starting","attempt":1}',-64215997853052812);
INSERT INTO "event" VALUES(6,1794991369701283585,1,2,'task','{"task":"long","to":"waiting"}',4067103680966187386);
INSERT INTO "event" VALUES(7,1794991369701284186,1,3,'task','{"task":"again","to":"starting","attempt":1}',-879125209755789593);
INSERT INTO "event" VALUES(8,1794991369701285348,1,4,'task','{"task":"last","to":"waiting"}',-6913200218590464788);
INSERT INTO "event" VALUES(9,1794991369704553697,1,1,'attempt','{"task":"bad","attempt":1,"token":2,"outcome":"blocked","cause":"exit","code":30,"seconds":0.000935533,"reason":"exit code 30"}',1505763201455310066);
INSERT INTO "event" VALUES(10,1794991369704573156,1,1,'task','{"task":"bad","from":"starting","to":"parked","attempt":1,"reason":"exit code 30"}',8461593913030974405);
INSERT INTO "event" VALUES(11,1794991369705620675,1,0,'attempt','{"task":"first","attempt":1,"token":1,"outcome":"refused","cause":"exit","code":75,"seconds":0.003000436,"reason":"exit code 75"}',2616871982669654130);
INSERT INTO "event" VALUES(12,1794991369705635187,1,0,'task','{"task":"first","from":"starting","to":"ready","attempt":1,"reason":"exit code 75"}',-6992574796525868324);
INSERT INTO "event" VALUES(13,1794991369730384624,1,3,'task','{"task":"again","from":"starting","to":"running","attempt":1}',5856473912047213319);
INSERT INTO "event" VALUES(14,1794991369806102492,1,0,'task','{"task":"first","from":"ready","to":"starting","attempt":2}',-6563970267035444321);
INSERT INTO "event" VALUES(15,1794991369809073814,1,0,'attempt','{"task":"first","attempt":2,"token":4,"outcome":"done","cause":"exit","code":0,"seconds":0.001635414}',-7532683767166343620);
INSERT INTO "event" VALUES(16,1794991369809123558,1,0,'task','{"task":"first","from":"starting","to":"done","attempt":2}',-8278330703356042583);
INSERT INTO "event" VALUES(17,1794991369809125481,1,2,'task','{"task":"long","from":"waiting","to":"starting","attempt":1}',6704493151774857365);
INSERT INTO "event" VALUES(18,1794991369840190965,1,2,'task','{"task":"long","from":"starting","to":"running","attempt":1}',-3416290566398304142);
INSERT INTO "event" VALUES(19,1794991370205184736,1,3,'attempt','{"task":"again","attempt":1,"token":3,"outcome":"failed","cause":"exit","code":1,"seconds":0.502292501,"reason":"exit code 1"}',-1473162922763764892);
INSERT INTO "event" VALUES(20,1794991370205217424,1,3,'task','{"task":"again","from":"running","to":"waiting","attempt":1,"reason":"exit code 1"}',-3537634794033258391);
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
INSERT INTO "executor" VALUES('a',0,0,105118423,0,0,0,0,0,-9223372036854775808,0,0,NULL);
INSERT INTO "executor" VALUES('local:implement',0,0,-9223372036854775808,0,0,0,0,0,-9223372036854775808,0,0,NULL);
CREATE TABLE fragment (
    run INTEGER NOT NULL,
    number INTEGER NOT NULL,
    file TEXT NOT NULL,
    text BLOB NOT NULL, key TEXT,
    PRIMARY KEY (run, number)
) STRICT;
INSERT INTO "fragment" VALUES(1,0,'plan.yaml',X'736C756963653A20310A6E616D653A206F6C640A6C696D6974733A207B73657373696F6E733A20337D0A64656661756C74733A207B72657472793A207B6D61783A20312C206261636B6F66663A203230306D737D7D0A70726F7669646572733A207B613A207B6261636B6F66663A203130306D737D7D0A7461736B733A0A20202D207B69643A2066697273742C2070726F76696465723A20612C2072756E3A20276563686F20227B5C2275736167655C223A207B5C227573645C223A20312E352C205C22696E7075745F746F6B656E735C223A2031302C205C226F75747075745F746F6B656E735C223A2032307D7D22203E24534C554943455F524553554C543B205B202D652072656675736564205D207C7C207B20746F75636820726566757365643B20657869742037353B207D277D0A20202D207B69643A206261642C2072756E3A202765786974203330277D0A20202D207B69643A206C6F6E672C206E656564733A205B66697273745D2C2072756E3A20277768696C65205B2021202D6520676F205D3B20646F20736C65657020302E30353B20646F6E65277D0A20202D207B69643A20616761696E2C2072756E3A2027736C65657020302E353B205B2024534C554943455F415454454D5054203D2032205D277D0A20202D207B69643A206C6173742C206E656564733A205B6C6F6E675D2C2072756E3A20276563686F20646F6E65277D0A',NULL);
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
, rules INTEGER NOT NULL DEFAULT 0, base_gates INTEGER NOT NULL DEFAULT 0, owed INTEGER NOT NULL DEFAULT 0, stopped INTEGER NOT NULL DEFAULT 0, deadline_over INTEGER NOT NULL DEFAULT 0, not_before_ns INTEGER NOT NULL DEFAULT 0) STRICT;
INSERT INTO "run" VALUES(1,'old','old','plan.yaml','@FOLDER@',2,1794991369701226029,0,0,0,0,0,1,1,0,0,0,0);
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
INSERT INTO "scheduler" VALUES(1,1,20219,529310,'host','@BOOT@',9,504701943,1794991370205233228,5,20,-3537634794033258391,1,1,'663a25a202fd7f0f8ed9a5d3958c4af4');
CREATE TABLE setting (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO "setting" VALUES('history/["implement",null,null,null]','{"durations":[2,-3.27463356,13.4037766],"outcomes":[3,1,0]}');
INSERT INTO "setting" VALUES('history/["implement",null]','{"durations":[2,-3.27463356,13.4037766],"outcomes":[3,1,0]}');
INSERT INTO "setting" VALUES('history/[]','{"durations":[2,-3.27463356,13.4037766],"outcomes":[3,1,0]}');
INSERT INTO "setting" VALUES('history/implement','{"durations":[2,-3.27463356,13.4037766],"outcomes":[3,1,0],"costs":[1,1.5,30]}');
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
, carry TEXT, outputs TEXT) STRICT;
INSERT INTO "task" VALUES(4294967296,'first','done',0,0,717488,1,0,0,0,10,4,NULL,0,1,2,0,0,0,NULL,NULL,NULL,3.0,60,NULL,NULL);
INSERT INTO "task" VALUES(4294967297,'bad','parked',0,1,717488,1,0,0,0,6,2,NULL,0,1,1,0,0,0,NULL,'exit code 30',NULL,0.0,0,'{"after":"blocked","lacks":"answer","reason":"exit code 30","question":"exit code 30"}',NULL);
INSERT INTO "task" VALUES(4294967298,'long','running',512,0,108595308,15,0,0,0,12,5,2,0,1,1,0,0,0,NULL,NULL,NULL,0.0,0,NULL,NULL);
INSERT INTO "task" VALUES(4294967299,'again','waiting',514,0,717488,1,704689644,0,0,13,3,NULL,0,1,1,1,0,0,NULL,'exit code 1',NULL,0.0,0,'{"after":"failed","reason":"exit code 1"}',NULL);
INSERT INTO "task" VALUES(4294967300,'last','waiting',0,0,0,0,0,0,0,5,0,NULL,0,0,0,0,0,0,NULL,NULL,NULL,0.0,0,NULL,NULL);
CREATE INDEX attempt_open ON attempt (token) WHERE state <> 'ended';
CREATE INDEX command_open ON command (number) WHERE answer IS NULL;
CREATE INDEX event_run ON event (run);
CREATE INDEX command_key ON command (key) WHERE key IS NOT NULL;
CREATE INDEX gate_repo ON gate (repo);
CREATE INDEX gate_run ON gate (run, task);
COMMIT;
PRAGMA application_id = 1936487785;
PRAGMA user_version = 7;
