// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "store/database.h"
#include "store/folder_lock.h"
#include "store/room.h"

#define FILE_NAME "profiles.db"

/* "pybp": marks a database as a store. */
#define APPLICATION_ID 0x70796270

/* Raised with every change that older programs would misread, of the names of outcomes too. */
#define SCHEMA_VERSION 2

/* The event of a window's samples.  The values of a service's samples, in the order of its counts;
 * NULL if they follow from the counts. */
#define EVENT_COLUMN "event TEXT NOT NULL DEFAULT '" STORE_CLOCK "'"
#define VALUE_COLUMN "sample_values BLOB"

/* A location without a mapping has 0. */
#define MAPPINGS_TABLE                                                                 \
	"CREATE TABLE mappings (id INTEGER PRIMARY KEY, first INTEGER NOT NULL,"       \
	" last INTEGER NOT NULL, file_offset INTEGER NOT NULL, file INTEGER NOT NULL," \
	" build_id INTEGER NOT NULL, until INTEGER NOT NULL,"                          \
	" UNIQUE (first, last, file_offset, file, build_id));"                         \
	"CREATE INDEX mappings_by_use ON mappings (until);"
#define LOCATIONS_TABLE                                                               \
	"CREATE TABLE locations (id INTEGER PRIMARY KEY, function INTEGER NOT NULL,"  \
	" line INTEGER NOT NULL, mapping INTEGER NOT NULL, address INTEGER NOT NULL," \
	" until INTEGER NOT NULL, UNIQUE (function, line, mapping, address));"        \
	"CREATE INDEX locations_by_use ON locations (until);"

/* A stack's locations are packed row numbers, leaf first.  A service's samples are packed pairs:
 * the stack's row number, as the difference from the previous one, and the count (packing.h). */
static const char schema[] =
	"CREATE TABLE strings (id INTEGER PRIMARY KEY, text TEXT NOT NULL UNIQUE,"
	" until INTEGER NOT NULL);"
	"CREATE TABLE functions (id INTEGER PRIMARY KEY, name INTEGER NOT NULL,"
	" filename INTEGER NOT NULL, short_filename INTEGER NOT NULL, first_line INTEGER NOT NULL,"
	" kind INTEGER NOT NULL, nameless INTEGER NOT NULL, until INTEGER NOT NULL,"
	" UNIQUE (name, filename, short_filename, first_line, kind, nameless));" MAPPINGS_TABLE
		LOCATIONS_TABLE
	"CREATE TABLE stacks (id INTEGER PRIMARY KEY, hash INTEGER NOT NULL,"
	" locations BLOB NOT NULL, until INTEGER NOT NULL);"
	"CREATE INDEX stacks_by_hash ON stacks (hash);"
	"CREATE TABLE label_sets (id INTEGER PRIMARY KEY, labels TEXT NOT NULL UNIQUE,"
	" until INTEGER NOT NULL);"
	"CREATE TABLE windows (id INTEGER PRIMARY KEY AUTOINCREMENT, start_ns INTEGER NOT NULL,"
	" end_ns INTEGER NOT NULL, rate_hz REAL NOT NULL, events INTEGER NOT NULL,"
	" samples INTEGER NOT NULL, lost INTEGER NOT NULL, outcomes TEXT NOT NULL, " EVENT_COLUMN
	");"
	"CREATE INDEX windows_by_time ON windows (end_ns, start_ns);"
	"CREATE TABLE services (window INTEGER NOT NULL, label_set INTEGER NOT NULL,"
	" samples BLOB NOT NULL, " VALUE_COLUMN ", PRIMARY KEY (window, label_set)) WITHOUT ROWID;"
	"CREATE INDEX strings_by_use ON strings (until);"
	"CREATE INDEX functions_by_use ON functions (until);"
	"CREATE INDEX stacks_by_use ON stacks (until);"
	"CREATE INDEX label_sets_by_use ON label_sets (until);";

/* From version 1, which has no machine code and no event but the clock. */
static const char migration[] =
	"BEGIN IMMEDIATE;"
	"DROP INDEX locations_by_use;"
	"ALTER TABLE locations RENAME TO former_locations;" MAPPINGS_TABLE LOCATIONS_TABLE
	"INSERT INTO locations SELECT id, function, line, 0, 0, until FROM former_locations;"
	"DROP TABLE former_locations;"
	"ALTER TABLE windows ADD COLUMN " EVENT_COLUMN ";"
	"ALTER TABLE services ADD COLUMN " VALUE_COLUMN ";"
	"PRAGMA user_version = 2;"
	"COMMIT;";

/* For what only reads version 1: hides its tables behind views that look like the present ones. */
static const char views[] =
	"PRAGMA temp_store = MEMORY;"
	"CREATE TEMP VIEW mappings AS SELECT 0 AS id, 0 AS first, 0 AS last, 0 AS file_offset,"
	" 0 AS file, 0 AS build_id WHERE 0;"
	"CREATE TEMP VIEW locations AS SELECT *, 0 AS mapping, 0 AS address FROM main.locations;"
	"CREATE TEMP VIEW windows AS SELECT *, '" STORE_CLOCK "' AS event FROM main.windows;"
	"CREATE TEMP VIEW services AS SELECT *, NULL AS sample_values FROM main.services;";

/* Turns an empty database into a store. */
static char *create_schema(struct store *store)
{
	char *numbers = xasprintf("PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT;",
				  APPLICATION_ID, SCHEMA_VERSION);
	/* auto_vacuum must be set before there is a table. */
	int code = database__run(store, "PRAGMA auto_vacuum = INCREMENTAL; BEGIN IMMEDIATE;")
			   ?: database__run(store, schema)
			   ?: database__run(store, numbers);

	free(numbers);
	return code ? database__fail(store) : NULL;
}

static char *migrate(struct store *store)
{
	int code = database__run(store, migration);

	if (database__lacks_room(store, code)) {
		database__roll_back(store);
		room__give_up_reserve(store);
		code = database__run(store, migration);
	}
	return code ? database__fail(store) : NULL;
}

/* The folder may belong to another user than the reader.  The database may contain rows, but
 * nothing that runs. */
static void trust_nothing(sqlite3 *database)
{
	sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
}

/* Reads what marks the kind of database.  *EMPTY: it has no tables. */
static int identify(struct store *store, int64_t *application, int64_t *version, bool *empty)
{
	int64_t tables = 0;
	int code = database__number(store, "PRAGMA application_id", 0, application)
			   ?: database__number(store, "PRAGMA user_version", 0, version)
			   ?: database__number(store, "SELECT count(*) FROM sqlite_schema", 0, &tables);

	*empty = !code && !tables;
	return code;
}

static char *check_kind(struct store *store, enum store_access wanted)
{
	int64_t application, version;
	bool empty;
	int code = identify(store, &application, &version, &empty);

	if (wanted == STORE_WRITE && database__lacks_room(store, code)) {
		room__give_up_reserve(store);
		code = identify(store, &application, &version, &empty);
	}
	if (code)
		return database__explain(store);
	if (empty && wanted == STORE_WRITE)
		return create_schema(store);
	if (empty && wanted == STORE_LOOK)
		return NULL;
	if (empty)
		return xasprintf("%s is empty: pybpfprof agent --store fills it", store->path);
	if (application != APPLICATION_ID)
		return xasprintf(
			"%s is a database, but not a store of profiles: choose another folder",
			store->path);
	if (version > SCHEMA_VERSION)
		return xasprintf("%s was made by a newer pybpfprof (format %lld, this one reads up "
				 "to %d): use that version, or another folder",
				 store->path, (long long)version, SCHEMA_VERSION);
	if (version == SCHEMA_VERSION)
		return NULL;
	if (wanted == STORE_WRITE)
		return migrate(store);
	return database__run(store, views) ? database__explain(store) : NULL;
}

/* Readers never block the writer.  After a crash of the machine the last windows may be missing,
 * but the database is not corrupt. */
static char *prepare_writing(struct store *store)
{
	int code = database__run(store, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
					"PRAGMA journal_size_limit = 1048576;"
					"PRAGMA wal_autocheckpoint = 256;"
					"PRAGMA cache_size = -2048; PRAGMA temp_store = MEMORY;");

	return code ? database__explain(store) : NULL;
}

/* What runs on the machine concerns only its owner: a new database is readable for its owner alone,
 * and so are the files that SQLite makes beside it.  An existing one keeps its mode. */
static void make_private(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	/* SQLite will report an error. */
	if (fd >= 0)
		close(fd);
}

static char *prepare_folder(const char *folder, enum store_access wanted, const char *path)
{
	if (wanted != STORE_WRITE)
		return access(path, F_OK) == 0
			       ? NULL
			       : xasprintf(
					 "no store in %s (%s): pybpfprof agent --store creates one",
					 folder, strerror(errno));
	if (mkdir(folder, 0700) && errno != EEXIST)
		return xasprintf("cannot create folder %s (%s): run mkdir -p first, or choose "
				 "another with --store",
				 folder, strerror(errno));
	if (access(folder, W_OK | X_OK))
		return xasprintf("cannot write to folder %s (%s): choose another with --store",
				 folder, strerror(errno));
	make_private(path);
	return NULL;
}

/* Windows of two agents would overlap, and count the same work twice. */
static char *lock_folder(struct store *store, const char *folder)
{
	store->lock = folder_lock__take(AT_FDCWD, folder);
	if (store->lock >= 0)
		return NULL;
	if (errno == EWOULDBLOCK)
		return xasprintf("another agent writes to the store in %s: stop it, or choose "
				 "another folder with --store",
				 folder);
	return xasprintf("cannot lock folder %s (%s): choose another with --store", folder,
			 strerror(errno));
}

char *store__open(const char *folder, enum store_access wanted, struct store **result)
{
	struct store *store = *result = xcalloc(1, sizeof(*store));
	int flags = wanted == STORE_WRITE ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
					  : SQLITE_OPEN_READONLY;
	char *wrong;

	store->path = xasprintf("%s/" FILE_NAME, folder);
	store->lock = store->reserve = -1;
	wrong = prepare_folder(folder, wanted, store->path);
	if (!wrong && wanted == STORE_WRITE)
		wrong = lock_folder(store, folder);
	if (!wrong && sqlite3_open_v2(store->path, &store->database, flags, NULL))
		wrong = database__explain(store);
	if (wrong)
		return wrong;
	trust_nothing(store->database);
	sqlite3_busy_timeout(store->database, DATABASE_PATIENCE_MS);
	wrong = check_kind(store, wanted);
	if (!wrong && wanted == STORE_WRITE)
		wrong = prepare_writing(store);
	if (!wrong && wanted == STORE_WRITE)
		room__reserve(store);
	return wrong;
}

char *store__look(const char *folder, uint64_t *bytes)
{
	char *path = xasprintf("%s/" FILE_NAME, folder), *wrong = NULL;
	struct store *store = NULL;

	*bytes = 0;
	if (!access(path, F_OK))
		wrong = store__open(folder, STORE_LOOK, &store);
	if (store && !wrong)
		*bytes = store__bytes(store);
	store__close(store);
	free(path);
	return wrong;
}

void store__close(struct store *store)
{
	if (!store)
		return;
	for (int table = 0; table < STORE_TABLES; table++) {
		sqlite3_finalize(store->find[table]);
		sqlite3_finalize(store->put[table]);
	}
	sqlite3_finalize(store->put_window);
	sqlite3_finalize(store->put_service);
	sqlite3_close(store->database);
	if (store->reserve >= 0)
		close(store->reserve);
	if (store->lock >= 0)
		close(store->lock);
	free(store->path);
	free(store);
}
