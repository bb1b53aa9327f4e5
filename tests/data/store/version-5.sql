-- The same, brought up to version 5 by its step.
PRAGMA foreign_keys=OFF;
BEGIN TRANSACTION;
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
) STRICT;
INSERT INTO scheduler VALUES(1,1,4650,205100,'host','@BOOT@',9,513361236,1794884686119887796,5,20,-4029184463197701708,1,1);
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
) STRICT;
INSERT INTO run VALUES(1,'old','old','plan.yaml','@FOLDER@',2,1794884685608031209,0,0,0,0,0);
CREATE TABLE fragment (
    run INTEGER NOT NULL,
    number INTEGER NOT NULL,
    file TEXT NOT NULL,
    text BLOB NOT NULL,
    PRIMARY KEY (run, number)
) STRICT;
INSERT INTO fragment VALUES(1,0,'plan.yaml',X'736c756963653a20310a6e616d653a206f6c640a6c696d6974733a207b73657373696f6e733a20337d0a64656661756c74733a207b72657472793a207b6d61783a20312c206261636b6f66663a203230306d737d7d0a70726f7669646572733a207b613a207b6261636b6f66663a203130306d737d7d0a7461736b733a0a20202d207b69643a2066697273742c2070726f76696465723a20612c2072756e3a20276563686f20227b5c2275736167655c223a207b5c227573645c223a20312e352c205c22696e7075745f746f6b656e735c223a2031302c205c226f75747075745f746f6b656e735c223a2032307d7d22203e24534c554943455f524553554c543b205b202d652072656675736564205d207c7c207b20746f75636820726566757365643b20657869742037353b207d277d0a20202d207b69643a206261642c2072756e3a202765786974203330277d0a20202d207b69643a206c6f6e672c206e656564733a205b66697273745d2c2072756e3a20277768696c65205b2021202d6520676f205d3b20646f20736c65657020302e30353b20646f6e65277d0a20202d207b69643a20616761696e2c2072756e3a2027736c65657020302e353b205b2024534c554943455f415454454d5054203d2032205d277d0a20202d207b69643a206c6173742c206e656564733a205b6c6f6e675d2c2072756e3a20276563686f20646f6e65277d0a');
CREATE TABLE run_limit (
    run INTEGER NOT NULL,
    name TEXT NOT NULL,
    max INTEGER NOT NULL,
    percent INTEGER NOT NULL,
    PRIMARY KEY (run, name)
) STRICT, WITHOUT ROWID;
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
    usd REAL NOT NULL, cached_tokens INTEGER NOT NULL DEFAULT 0, slot INTEGER NOT NULL DEFAULT 0, nonce TEXT NOT NULL DEFAULT '',
    UNIQUE (run, task, number)
) STRICT;
INSERT INTO attempt VALUES(1,1,0,1,1,'ended',1,'@BOOT@',4666,205104,1794884685608482140,1794884685611215584,1794884685624396162,'refused','exit','exit code 75',75,0,10,20,1.5,0,0,'');
INSERT INTO attempt VALUES(2,1,1,1,1,'ended',1,'@BOOT@',4667,205104,1794884685608483593,1794884685614401826,1794884685619159167,'blocked','exit','exit code 30',30,0,0,0,0.0,0,0,'');
INSERT INTO attempt VALUES(3,1,3,1,1,'ended',1,'@BOOT@',4668,205104,1794884685608484244,1794884685611378101,1794884686119631394,'failed','exit','exit code 1',1,0,0,0,0.0,0,0,'');
INSERT INTO attempt VALUES(4,1,0,2,1,'ended',1,'@BOOT@',4666,205104,1794884685725098121,1794884685725871563,1794884685729095852,'done','exit',NULL,0,0,10,20,1.5,0,0,'');
INSERT INTO attempt VALUES(5,1,2,1,1,'running',1,'@BOOT@',4666,205104,1794884685729244012,1794884685734916765,0,NULL,NULL,NULL,-1,0,0,0,0.0,0,0,'');
CREATE TABLE event (
    number INTEGER PRIMARY KEY,
    wall_ns INTEGER NOT NULL,
    run INTEGER,
    task INTEGER,
    kind TEXT NOT NULL,
    data TEXT NOT NULL,
    sum INTEGER NOT NULL
) STRICT;
INSERT INTO event VALUES(1,1794884685607738844,NULL,NULL,'scheduler','{"epoch":1,"found":0,"adopted":0}',-7388463457102305303);
INSERT INTO event VALUES(2,1794884685608418085,1,NULL,'run','{"to":"submitted","id":"old","tasks":5}',1572327137312757892);
INSERT INTO event VALUES(3,1794884685608428240,NULL,NULL,'order','{"verb":"submit","by":"uid 0 pid 4650","answer":{"ok":true,"text":"run old is submitted","run":"old","number":1,"tasks":5}}',8387714082998262087);
INSERT INTO event VALUES(4,1794884685608485816,1,0,'task','{"task":"first","to":"starting","attempt":1}',-5267797370160388264);
INSERT INTO event VALUES(5,1794884685608486527,1,1,'task','{"task":"bad","to":"starting","attempt":1}',-3374826408215494607);
INSERT INTO event VALUES(6,1794884685608487208,1,2,'task','{"task":"long","to":"waiting"}',523920083842722462);
INSERT INTO event VALUES(7,1794884685608487909,1,3,'task','{"task":"again","to":"starting","attempt":1}',-4574299226852019391);
INSERT INTO event VALUES(8,1794884685608489011,1,4,'task','{"task":"last","to":"waiting"}',-636001282669227638);
INSERT INTO event VALUES(9,1794884685621824369,1,1,'attempt','{"task":"bad","attempt":1,"token":2,"outcome":"blocked","cause":"exit","code":30,"seconds":0.004757341,"reason":"exit code 30"}',7208923719988161215);
INSERT INTO event VALUES(10,1794884685621848094,1,1,'task','{"task":"bad","from":"starting","to":"parked","attempt":1,"reason":"exit code 30"}',2818455006215364108);
INSERT INTO event VALUES(11,1794884685624557657,1,0,'attempt','{"task":"first","attempt":1,"token":1,"outcome":"refused","cause":"exit","code":75,"seconds":0.013180578,"reason":"exit code 75"}',6979194973742935599);
INSERT INTO event VALUES(12,1794884685624570907,1,0,'task','{"task":"first","from":"starting","to":"ready","attempt":1,"reason":"exit code 75"}',27933365314620647);
INSERT INTO event VALUES(13,1794884685643541683,1,3,'task','{"task":"again","from":"starting","to":"running","attempt":1}',-1652787836346070962);
INSERT INTO event VALUES(14,1794884685725110680,1,0,'task','{"task":"first","from":"ready","to":"starting","attempt":2}',2960609292884215529);
INSERT INTO event VALUES(15,1794884685729230542,1,0,'attempt','{"task":"first","attempt":2,"token":4,"outcome":"done","cause":"exit","code":0,"seconds":0.003224289}',-6551370848720484797);
INSERT INTO event VALUES(16,1794884685729245715,1,0,'task','{"task":"first","from":"starting","to":"done","attempt":2}',2199118017670041234);
INSERT INTO event VALUES(17,1794884685729247277,1,2,'task','{"task":"long","from":"waiting","to":"starting","attempt":1}',7995034510278509010);
INSERT INTO event VALUES(18,1794884685760078551,1,2,'task','{"task":"long","from":"starting","to":"running","attempt":1}',-1601795746103670820);
INSERT INTO event VALUES(19,1794884686119870330,1,3,'attempt','{"task":"again","attempt":1,"token":3,"outcome":"failed","cause":"exit","code":1,"seconds":0.508253293,"reason":"exit code 1"}',-3009765707642392282);
INSERT INTO event VALUES(20,1794884686119885202,1,3,'task','{"task":"again","from":"running","to":"waiting","attempt":1,"reason":"exit code 1"}',-4029184463197701708);
CREATE TABLE command (
    number INTEGER PRIMARY KEY,
    wall_ns INTEGER NOT NULL,
    who TEXT NOT NULL,
    verb TEXT NOT NULL,
    args TEXT NOT NULL,
    answer TEXT
) STRICT;
INSERT INTO command VALUES(1,1794884685608426568,'uid 0 pid 4650','submit','{"verb":"submit","file":"plan.yaml","folder":"@FOLDER@","processors":2,"new":false}','{"ok":true,"text":"run old is submitted","run":"old","number":1,"tasks":5}');
CREATE TABLE setting (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO setting VALUES('history/implement','{"count":1,"seconds":0.003224289,"usd":1.5,"tokens":30}');
CREATE TABLE IF NOT EXISTS "executor" (
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
INSERT INTO executor VALUES('a',0,0,118038589,0,0,0,0,0,-9223372036854775808,0,0,NULL);
INSERT INTO executor VALUES('local',0,0,-9223372036854775808,0,1,0,0,0,-9223372036854775808,0,0,NULL);
CREATE TABLE IF NOT EXISTS "task" (
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
INSERT INTO task VALUES(4294967296,'first','done',0,0,1510769,1,0,0,0,10,4,NULL,0,1,2,0,0,0,NULL,NULL,NULL,3.0,60,NULL);
INSERT INTO task VALUES(4294967297,'bad','parked',0,1,1510769,1,0,0,0,6,2,NULL,0,1,1,0,0,0,NULL,'exit code 30',NULL,0.0,0,NULL);
INSERT INTO task VALUES(4294967298,'long','running',512,0,122712225,15,0,0,0,12,5,2,0,1,1,0,0,0,NULL,NULL,NULL,0.0,0,NULL);
INSERT INTO task VALUES(4294967299,'again','waiting',514,0,1510769,1,713351552,0,0,13,3,NULL,0,1,1,1,0,0,NULL,'exit code 1',NULL,0.0,0,NULL);
INSERT INTO task VALUES(4294967300,'last','waiting',0,0,0,0,0,0,0,5,0,NULL,0,0,0,0,0,0,NULL,NULL,NULL,0.0,0,NULL);
CREATE INDEX attempt_open ON attempt (token) WHERE state <> 'ended';
CREATE INDEX command_open ON command (number) WHERE answer IS NULL;
CREATE INDEX event_run ON event (run);
ALTER TABLE command ADD COLUMN key TEXT;
CREATE INDEX command_key ON command (key) WHERE key IS NOT NULL;
ALTER TABLE scheduler ADD COLUMN id TEXT NOT NULL DEFAULT '';
UPDATE scheduler SET id = '0123456789abcdef0123456789abcdef';
ALTER TABLE attempt ADD COLUMN confined INTEGER NOT NULL DEFAULT 0;
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
CREATE INDEX gate_repo ON gate (repo);
CREATE INDEX gate_run ON gate (run, task);
ALTER TABLE run ADD COLUMN rules INTEGER NOT NULL DEFAULT 0;
ALTER TABLE run ADD COLUMN base_gates INTEGER NOT NULL DEFAULT 0;
COMMIT;
PRAGMA application_id = 1936487785;
PRAGMA user_version = 5;
