-- A results database of schema 1, written by the code of that time: its dump, and the pragmas that a dump lacks.
-- Rows 1 to 3 know nothing of conditions, plausibility and work; row 4 has them, but only in its JSON.
BEGIN TRANSACTION;
CREATE TABLE build_logs (evaluation_id INTEGER PRIMARY KEY REFERENCES evaluations (id), log BLOB NOT NULL);
INSERT INTO "build_logs" VALUES(1,X'789CCBC9CC4B5530E4CA0151465C0022050408');
CREATE TABLE candidates (digest TEXT PRIMARY KEY, source BLOB NOT NULL);
INSERT INTO "candidates" VALUES('cccccccccccccccc',X'789C4BCE492C2E56F0CD4F49CDF14B2DB752D0D3D3E302004B3C0640');
CREATE TABLE details (
    evaluation_id INTEGER PRIMARY KEY REFERENCES evaluations (id),
    environment TEXT NOT NULL REFERENCES environments (digest),
    evaluation TEXT NOT NULL
);
INSERT INTO "details" VALUES(1,'0969bafbff6ef64d','{"subject":{"run":"demo","sample":0,"turn":0,"model":"model-a","prompt":"plain","suite":"core","problem":"add","problem_digest":"1111111111111111","candidate_digest":"cccccccccccccccc","language":"cpp","device":"cpu","workload":"full","baseline":"eager"},"outcome":"correct","message":"","findings":[],"correctness":{"trials":[{"distribution":"as_given","passed":true,"max_abs_error":null,"reference_max_abs_error":null,"worst_ratio":null,"mismatched":0,"elements":0,"message":""}],"weights":"none","truth":"float64"},"timing":{"baseline":"eager","baseline_us":100.0,"candidate_us":50.0,"speedup":2.0,"speedup_low":1.75,"speedup_high":2.25,"verdict":"faster","blocks":{"calls":[1,1,1],"baseline_claim_us":[100.0,101.0,102.0],"candidate_claim_us":[50.0,51.0,52.0],"baseline_judge_us":[130.0,131.0,132.0],"candidate_judge_us":[81.0,82.0,83.0],"baseline_copy_us":[9.0,9.0,9.0],"candidate_copy_us":[9.5,9.5,9.5]},"overhead_us":30.5,"noise_floor":0.0625},"build":{"keys":["kkkkkkkkkkkkkkkk"],"cached":false,"duration_s":12.5,"lane":"plain"},"confinement":"bubblewrap","seeds_digest":"","started_at":"2026-01-01T00:00:00+00:00","duration_s":3.5,"phases_s":[["timing",1.5]]}');
INSERT INTO "details" VALUES(2,'0969bafbff6ef64d','{"subject":{"run":"demo","sample":0,"turn":0,"model":"model-a","prompt":"plain","suite":"core","problem":"mul","problem_digest":"1111111111111111","candidate_digest":"cccccccccccccccc","language":"cpp","device":"cpu","workload":"full","baseline":"eager"},"outcome":"wrong_value","message":"","findings":[{"check":"correctness","severity":"fatal","message":"9 wrong","evidence":""}],"correctness":{"trials":[{"distribution":"large","passed":false,"max_abs_error":Infinity,"reference_max_abs_error":null,"worst_ratio":Infinity,"mismatched":3,"elements":9,"message":""}],"weights":"loaded","truth":"float64"},"timing":null,"build":null,"confinement":"none","seeds_digest":"","started_at":"","duration_s":0.0,"phases_s":[]}');
INSERT INTO "details" VALUES(3,'0969bafbff6ef64d','{"subject":{"run":"demo","sample":0,"turn":0,"model":"model-a","prompt":"plain","suite":"core","problem":"sub","problem_digest":"1111111111111111","candidate_digest":"","language":"cpp","device":"none","workload":"full","baseline":"eager"},"outcome":"no_code","message":"","findings":[],"correctness":null,"timing":null,"build":null,"confinement":"none","seeds_digest":"","started_at":"","duration_s":0.0,"phases_s":[]}');
INSERT INTO "details" VALUES(4,'0969bafbff6ef64d','{"subject":{"run":"demo","sample":0,"turn":0,"model":"model-a","prompt":"plain","suite":"core","problem":"div","problem_digest":"1111111111111111","candidate_digest":"cccccccccccccccc","language":"cpp","device":"cpu","workload":"full","baseline":"eager"},"outcome":"correct","message":"","findings":[],"correctness":{"trials":[{"distribution":"as_given","passed":true,"max_abs_error":null,"reference_max_abs_error":null,"worst_ratio":null,"mismatched":0,"elements":0,"message":""}],"weights":"none","truth":"float64"},"timing":{"baseline":"eager","baseline_us":100.0,"candidate_us":25.0,"speedup":4.0,"speedup_low":3.9,"speedup_high":4.1,"verdict":"faster","blocks":{"calls":[],"baseline_claim_us":[],"candidate_claim_us":[],"baseline_judge_us":[],"candidate_judge_us":[],"baseline_copy_us":[],"candidate_copy_us":[]},"overhead_us":1.0,"noise_floor":null,"resolution_us":null,"conditions":null,"attempts":1},"build":null,"confinement":"none","seeds_digest":"","started_at":"","duration_s":0.0,"phases_s":[],"plausibility":{"moved_bytes":4096,"flops":null,"bandwidth_gb_s":10.0,"tflops":0.1,"bound_us":0.4,"operations_us":null,"peak_fraction":0.5},"work":{"own":0.75,"torch":0.25,"library":0.0,"other":0.0,"own_kernels":["k"],"without_own":"changed"},"certificate":"ffffffffffffffff"}');
CREATE TABLE environments (digest TEXT PRIMARY KEY, entries TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "environments" VALUES('0969bafbff6ef64d','[["harness", "0.1.0"], ["torch", "2.9.0"], ["cpu", "Example CPU 9000"], ["gpu", "NVIDIA H200"]]');
CREATE TABLE evaluations (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    slot TEXT NOT NULL,
    problem_digest TEXT NOT NULL,
    run TEXT NOT NULL, problem TEXT NOT NULL, sample INTEGER NOT NULL, turn INTEGER NOT NULL,
    suite TEXT NOT NULL, model TEXT NOT NULL, prompt TEXT NOT NULL, language TEXT NOT NULL,
    device TEXT NOT NULL, workload TEXT NOT NULL, outcome TEXT NOT NULL,
    speedup REAL, speedup_low REAL, speedup_high REAL, verdict TEXT,
    baseline TEXT NOT NULL, baseline_us REAL, candidate_us REAL,
    message TEXT NOT NULL, findings TEXT NOT NULL, candidate TEXT NOT NULL,
    duration_s REAL NOT NULL, started_at TEXT NOT NULL, confinement TEXT NOT NULL,
    harness_version TEXT NOT NULL, torch TEXT NOT NULL, hardware TEXT NOT NULL
);
INSERT INTO "evaluations" VALUES(1,'1dfacd12d7e5b7e9','1111111111111111','demo','add',0,0,'core','model-a','plain','cpp','cpu','full','correct',2.0,1.75,2.25,'faster','eager',100.0,50.0,'','','cccccccccccccccc',3.5,'2026-01-01T00:00:00+00:00','bubblewrap','0.1.0','2.9.0','Example CPU 9000');
INSERT INTO "evaluations" VALUES(2,'9fb585e91f9c0321','1111111111111111','demo','mul',0,0,'core','model-a','plain','cpp','cpu','full','wrong_value',NULL,NULL,NULL,NULL,'eager',NULL,NULL,'','fatal: correctness','cccccccccccccccc',0.0,'','none','0.1.0','2.9.0','Example CPU 9000');
INSERT INTO "evaluations" VALUES(3,'d8313164a41a08ef','1111111111111111','demo','sub',0,0,'core','model-a','plain','cpp','none','full','no_code',NULL,NULL,NULL,NULL,'eager',NULL,NULL,'','','',0.0,'','none','0.1.0','2.9.0','Example CPU 9000');
INSERT INTO "evaluations" VALUES(4,'4077464b39c06399','1111111111111111','demo','div',0,0,'core','model-a','plain','cpp','cpu','full','correct',4.0,3.9,4.1,'faster','eager',100.0,25.0,'','','cccccccccccccccc',0.0,'','none','0.1.0','2.9.0','Example CPU 9000');
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
INSERT INTO "meta" VALUES('created_by','0.1.0');
CREATE INDEX evaluations_by_slot ON evaluations (slot, problem_digest);
CREATE INDEX evaluations_by_sample ON evaluations (run, problem, sample, turn);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('evaluations',4);
COMMIT;
PRAGMA application_id=1752329843;
PRAGMA user_version=1;
