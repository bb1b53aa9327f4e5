-- A run of version 4 with stages whose names are no classes.
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
, id TEXT NOT NULL DEFAULT '') STRICT;
INSERT INTO scheduler VALUES(1,1,1080,3560920,'host','@BOOT@',4,25368834,1794918243860789505,2,13,-2924177512112043877,1,1,'1a272da1934460e7502536248a45ef52');
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
INSERT INTO run VALUES(1,'old','old','plan.yaml','@FOLDER@',2,1794918243842866314,0,0,0,0,0);
CREATE TABLE fragment (
    run INTEGER NOT NULL,
    number INTEGER NOT NULL,
    file TEXT NOT NULL,
    text BLOB NOT NULL,
    PRIMARY KEY (run, number)
) STRICT;
INSERT INTO fragment VALUES(1,0,'plan.yaml',X'736c756963653a20310a6e616d653a206f6c640a6c696d6974733a207b73657373696f6e733a20317d0a64656661756c74733a207b72657472793a20307d0a706970656c696e65733a0a202069737375653a0a202020202d207b73746167653a2077726974652c2072756e3a20276563686f2024534c554943455f5441534b203e3e20646f6e65277d0a202020202d207b73746167653a20746573742c2072756e3a202774657374202d6520676f207c7c20657869742033303b206563686f2024534c554943455f5441534b203e3e20646f6e65277d0a202020202d207b73746167653a20736869702c2072756e3a20276563686f2024534c554943455f5441534b203e3e20646f6e65277d0a67726f7570733a0a20202d207b69643a20672c20706970656c696e653a2069737375657d0a7461736b733a0a20202d207b69643a206275696c642c2072756e3a20276563686f2024534c554943455f5441534b203e3e20646f6e65272c206e656564733a205b675d7d0a');
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
INSERT INTO attempt VALUES(1,1,0,1,1,'ended',1,'@BOOT@',1114,3560927,1794918243843342272,1794918243849190146,1794918243850132298,'done','exit',NULL,0,0,0,0,0.0,0,1,'68766cdfa275a958a19cbfb670b96bfa');
INSERT INTO attempt VALUES(2,1,1,1,1,'ended',1,'@BOOT@',1114,3560927,1794918243850398374,1794918243856529430,1794918243860490906,'blocked','exit','exit code 30',30,0,0,0,0.0,0,1,'e51bd0cfd83768bd85946c45a0377787');
CREATE TABLE event (
    number INTEGER PRIMARY KEY,
    wall_ns INTEGER NOT NULL,
    run INTEGER,
    task INTEGER,
    kind TEXT NOT NULL,
    data TEXT NOT NULL,
    sum INTEGER NOT NULL
) STRICT;
INSERT INTO event VALUES(1,1794918243842397626,NULL,NULL,'scheduler','{"epoch":1,"found":0,"adopted":0}',1209853584528479190);
INSERT INTO event VALUES(2,1794918243843189154,1,NULL,'run','{"to":"submitted","id":"old","tasks":4}',-5545415469891297018);
INSERT INTO event VALUES(3,1794918243843260140,NULL,NULL,'order','{"verb":"submit","by":"uid 0 pid 1080","answer":{"ok":true,"text":"run old is submitted","run":"old","number":1,"tasks":4}}',-291208217650167287);
INSERT INTO event VALUES(4,1794918243843363634,1,0,'task','{"task":"g/write","to":"starting","attempt":1}',-1362326005509219529);
INSERT INTO event VALUES(5,1794918243843367009,1,1,'task','{"task":"g/test","to":"waiting"}',-6962356447437406012);
INSERT INTO event VALUES(6,1794918243843368982,1,2,'task','{"task":"g/ship","to":"waiting"}',-1889385361832843724);
INSERT INTO event VALUES(7,1794918243843371255,1,3,'task','{"task":"build","to":"waiting"}',2451986881502846011);
INSERT INTO event VALUES(8,1794918243850347178,1,0,'attempt','{"task":"g/write","attempt":1,"token":1,"outcome":"done","cause":"exit","code":0,"seconds":0.000942152}',642381548269707831);
INSERT INTO event VALUES(9,1794918243850406376,1,0,'task','{"task":"g/write","from":"starting","to":"done","attempt":1}',5940346162239694670);
INSERT INTO event VALUES(10,1794918243850409471,1,1,'task','{"task":"g/test","from":"waiting","to":"starting","attempt":1}',-2014736736942539331);
INSERT INTO event VALUES(11,1794918243860740432,1,1,'attempt','{"task":"g/test","attempt":1,"token":2,"outcome":"blocked","cause":"exit","code":30,"seconds":0.003961476,"reason":"exit code 30"}',8345339109269570470);
INSERT INTO event VALUES(12,1794918243860778799,1,1,'task','{"task":"g/test","from":"starting","to":"parked","attempt":1,"reason":"exit code 30"}',-1571097733742611494);
INSERT INTO event VALUES(13,1794918243860783997,1,NULL,'run','{"to":"waiting","waiting":2,"done":1,"parked":1}',-2924177512112043877);
CREATE TABLE command (
    number INTEGER PRIMARY KEY,
    wall_ns INTEGER NOT NULL,
    who TEXT NOT NULL,
    verb TEXT NOT NULL,
    args TEXT NOT NULL,
    answer TEXT
, key TEXT) STRICT;
INSERT INTO command VALUES(1,1794918243843247551,'uid 0 pid 1080','submit','{"verb":"submit","file":"plan.yaml","folder":"@FOLDER@","processors":2,"new":false}','{"ok":true,"text":"run old is submitted","run":"old","number":1,"tasks":4}',NULL);
CREATE TABLE setting (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO setting VALUES('history/implement','{"count":1,"seconds":0.000942152,"usd":0,"tokens":0}');
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
INSERT INTO executor VALUES('local:implement',0,0,-9223372036854775808,0,0,0,0,0,-9223372036854775808,0,0,NULL);
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
INSERT INTO task VALUES(4294967296,'g/write','done',512,0,7486172,1,0,0,0,5,1,NULL,0,1,1,0,0,0,NULL,NULL,NULL,0.0,0,NULL);
INSERT INTO task VALUES(4294967297,'g/test','parked',0,1,14965504,4,0,0,0,7,2,NULL,0,1,1,0,0,0,NULL,'exit code 30',NULL,0.0,0,'{"after":"blocked","lacks":"answer","reason":"exit code 30","question":"exit code 30"}');
INSERT INTO task VALUES(4294967298,'g/ship','waiting',512,0,0,0,0,0,0,3,0,NULL,0,0,0,0,0,0,NULL,NULL,NULL,0.0,0,NULL);
INSERT INTO task VALUES(4294967299,'build','waiting',0,0,0,0,0,0,0,4,0,NULL,0,0,0,0,0,0,NULL,NULL,NULL,0.0,0,NULL);
CREATE INDEX attempt_open ON attempt (token) WHERE state <> 'ended';
CREATE INDEX command_open ON command (number) WHERE answer IS NULL;
CREATE INDEX event_run ON event (run);
CREATE INDEX command_key ON command (key) WHERE key IS NOT NULL;
COMMIT;
PRAGMA application_id = 1936487785;
PRAGMA user_version = 4;
