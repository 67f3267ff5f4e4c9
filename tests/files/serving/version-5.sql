BEGIN TRANSACTION;
CREATE TABLE activations (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	application_id INTEGER NOT NULL, 
	event_id VARCHAR NOT NULL, 
	activated_at DOUBLE NOT NULL, 
	UNIQUE (application_id, event_id)
);
INSERT INTO "activations" VALUES(1,1,'e1',1.0);
CREATE TABLE applications (
	id INTEGER NOT NULL, 
	name VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	settings TEXT NOT NULL, 
	pinned INTEGER, 
	created_at DOUBLE NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (name)
);
INSERT INTO "applications" VALUES(1,'shop','ranked','{"rewardWaitTime":"PT600S","defaultReward":0.0,"rewardAggregation":"earliest","explorationPercentage":null,"modelExportFrequency":"PT5S","logRetentionDays":-1,"learningMode":"Online","rewardRange":[0.0,1.0],"actions":[],"bounds":null,"hashBits":18,"randomState":0,"controlShare":0.0,"controlKey":null,"controlPeriod":"P1D","controlVersion":null,"metrics":{},"rewardGuardrail":"alert"}',NULL,1.0);
CREATE TABLE cuts (
	training_id VARCHAR NOT NULL, 
	outcome_id INTEGER NOT NULL, 
	rows INTEGER NOT NULL, 
	learned BOOLEAN NOT NULL, 
	version INTEGER, 
	PRIMARY KEY (training_id, outcome_id)
);
CREATE TABLE decisions (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	application_id INTEGER NOT NULL, 
	event_id VARCHAR NOT NULL, 
	slot VARCHAR NOT NULL, 
	decided_at DOUBLE NOT NULL, 
	context BLOB NOT NULL, 
	actions BLOB, 
	action INTEGER, 
	value DOUBLE, 
	propensity DOUBLE NOT NULL, 
	probabilities BLOB, 
	uniform DOUBLE NOT NULL, 
	exploration DOUBLE NOT NULL, 
	model_version INTEGER NOT NULL, 
	"deferred" BOOLEAN NOT NULL, 
	baseline INTEGER, 
	preferred INTEGER, 
	experiment VARCHAR, 
	unit VARCHAR, 
	control BOOLEAN, 
	UNIQUE (application_id, event_id, slot)
);
INSERT INTO "decisions" VALUES(1,1,'e1','',1000.0,X'7B2275736572223A7B226964223A227531227D2C225F6D756C7469223A5B7B226964223A2261227D2C7B226964223A2262227D5D7D',X'5B2261222C2262225D',1,NULL,0.5,NULL,0.7,0.0,0,0,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "decisions" VALUES(2,1,'e2','',1000.0,X'7B2275736572223A7B226964223A227531227D2C225F6D756C7469223A5B7B226964223A2261227D2C7B226964223A2262227D5D7D',X'5B2261222C2262225D',1,NULL,0.5,NULL,0.7,0.0,0,0,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE imports (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	application_id INTEGER NOT NULL, 
	made_at DOUBLE NOT NULL, 
	rows INTEGER NOT NULL, 
	body BLOB NOT NULL, 
	ended_at DOUBLE
);
CREATE TABLE keys (
	digest VARCHAR NOT NULL, 
	application_id INTEGER NOT NULL, 
	role VARCHAR NOT NULL, 
	created_at DOUBLE NOT NULL, 
	expires_at DOUBLE, 
	PRIMARY KEY (digest)
);
INSERT INTO "keys" VALUES('bedc8e39199045a7ff6c2c3f1cc5c2dff87df53f9cdf0a24aec03b3ad618ab19',1,'write',1.0,NULL);
CREATE TABLE meta (
	name VARCHAR NOT NULL, 
	value TEXT NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "meta" VALUES('schema version','5');
CREATE TABLE minutes (
	application_id INTEGER NOT NULL, 
	minute INTEGER NOT NULL, 
	decisions INTEGER NOT NULL, 
	outcomes INTEGER NOT NULL, 
	defaults INTEGER NOT NULL, 
	reward DOUBLE NOT NULL, 
	reward_squared DOUBLE NOT NULL, 
	uniform TEXT NOT NULL, 
	baseline TEXT NOT NULL, 
	standing BLOB NOT NULL, 
	actions TEXT NOT NULL, 
	PRIMARY KEY (application_id, minute)
);
CREATE TABLE models (
	application_id INTEGER NOT NULL, 
	version INTEGER NOT NULL, 
	created_at DOUBLE NOT NULL, 
	outcome_id INTEGER NOT NULL, 
	rows INTEGER NOT NULL, 
	body BLOB NOT NULL, 
	withdrawn TEXT, 
	last_decision INTEGER, 
	PRIMARY KEY (application_id, version)
);
INSERT INTO "models" VALUES(1,1,1.0,1,1,X'61206D6F64656C',NULL,NULL);
CREATE TABLE outcomes (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	application_id INTEGER NOT NULL, 
	decision_id INTEGER NOT NULL, 
	reward DOUBLE NOT NULL, 
	by_default BOOLEAN NOT NULL, 
	joined_at DOUBLE NOT NULL, 
	UNIQUE (decision_id)
);
INSERT INTO "outcomes" VALUES(1,1,1,1.0,0,1002.0);
CREATE TABLE rewards (
	id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT, 
	application_id INTEGER NOT NULL, 
	event_id VARCHAR NOT NULL, 
	slot VARCHAR NOT NULL, 
	value DOUBLE NOT NULL, 
	received_at DOUBLE NOT NULL, 
	idempotency_key VARCHAR, 
	metrics TEXT, 
	UNIQUE (application_id, event_id, slot, idempotency_key)
);
INSERT INTO "rewards" VALUES(1,1,'e1','',1.0,1001.0,NULL,NULL);
CREATE TABLE trainings (
	id VARCHAR NOT NULL, 
	application_id INTEGER NOT NULL, 
	began_at DOUBLE NOT NULL, 
	start INTEGER NOT NULL, 
	settings TEXT NOT NULL, 
	import_id INTEGER, 
	PRIMARY KEY (id)
);
CREATE INDEX decisions_in_order ON decisions (application_id, id, decided_at);
CREATE INDEX decisions_by_time ON decisions (application_id, decided_at);
CREATE INDEX activations_in_order ON activations (application_id, id);
CREATE INDEX rewards_in_order ON rewards (application_id, id);
CREATE INDEX outcomes_in_order ON outcomes (application_id, id);
DELETE FROM "sqlite_sequence";
INSERT INTO "sqlite_sequence" VALUES('decisions',2);
INSERT INTO "sqlite_sequence" VALUES('rewards',1);
INSERT INTO "sqlite_sequence" VALUES('activations',1);
INSERT INTO "sqlite_sequence" VALUES('outcomes',1);
COMMIT;
