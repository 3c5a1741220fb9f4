// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/xalloc.h"
#include "profile/plain_text.h"
#include "store/database.h"
#include "store/folder_lock.h"
#include "store/room.h"

#define FILE_NAME "profiles.db"

/* "pybp": tells the database from others. */
#define APPLICATION_ID 0x70796270

/* Raised with every change after which older programs would read something wrong, also of the names
 * of outcomes. */
#define SCHEMA_VERSION 2

/* Of what SQLite says. */
#define WORDS_BYTES_MAX 200

const struct store_table_layout store_tables[STORE_TABLES] = {
	[TABLE_STRINGS] = { "strings", "text", 1 },
	[TABLE_FUNCTIONS] = { "functions",
			      "name, filename, short_filename, first_line, kind, nameless", 6 },
	[TABLE_MAPPINGS] = { "mappings", "first, last, file_offset, file, build_id", 5 },
	[TABLE_LOCATIONS] = { "locations", "function, line, mapping, address", 4 },
	[TABLE_STACKS] = { "stacks", "hash, locations", 2 },
	[TABLE_LABEL_SETS] = { "label_sets", "labels", 1 },
};

/* Of the event that a window's samples are of; and what a service's samples are worth beside their
 * counts, in the order of these: NULL where that follows from the counts. */
#define EVENT_COLUMN "event TEXT NOT NULL DEFAULT 'cpu'"
#define VALUE_COLUMN "sample_values BLOB"

/* A mapping's number 0 is none. */
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

/* A stack's locations are numbers of that table, leaf first; a service's samples pairs of a stack,
 * less the one before, and a count: packing.h. */
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

/* From version 1, which had neither machine code nor other events. */
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

bool database__lacks_room(const struct store *store, int code)
{
	int error = sqlite3_system_errno(store->database);

	/* SQLite knows of the disk's end in a file that it writes, but not in one that it maps, nor
	 * of a quota's. */
	return code == SQLITE_FULL ||
	       (code == SQLITE_IOERR && (error == ENOSPC || error == EDQUOT));
}

/* SQLite's words, which may have some of a broken database's in them. */
static char *explain(const struct store *store, const char *words)
{
	int code = store->database ? sqlite3_errcode(store->database) : SQLITE_NOMEM;

	if (database__lacks_room(store, code))
		return xasprintf("no space left to write %s (%s): free some", store->path, words);
	switch (code) {
	case SQLITE_NOTADB:
	case SQLITE_CORRUPT:
		return xasprintf("%s is corrupt (%s): move it away, or save what is readable with "
				 "sqlite3 %s .recover",
				 store->path, words, store->path);
	case SQLITE_CANTOPEN:
	case SQLITE_READONLY:
	case SQLITE_PERM:
		return xasprintf("cannot open %s (%s): check the permissions of it and of the "
				 "files beside it",
				 store->path, words);
	default:
		return xasprintf("%s: %s", store->path, words);
	}
}

char *database__explain(const struct store *store)
{
	const char *words = sqlite3_errmsg(store->database);
	char *plain = plain_text__of_bytes(words, strlen(words), WORDS_BYTES_MAX);
	char *wrong = explain(store, plain);

	free(plain);
	return wrong;
}

int database__prepare(struct store *store, const char *sql, sqlite3_stmt **statement)
{
	return sqlite3_prepare_v3(store->database, sql, -1, SQLITE_PREPARE_PERSISTENT, statement,
				  NULL);
}

int database__run(struct store *store, const char *sql)
{
	return sqlite3_exec(store->database, sql, NULL, NULL, NULL);
}

int database__number(struct store *store, const char *sql, int64_t argument, int64_t *number)
{
	sqlite3_stmt *statement;
	int code = database__prepare(store, sql, &statement);

	*number = 0;
	if (code)
		return code;
	if (sqlite3_bind_parameter_count(statement))
		sqlite3_bind_int64(statement, 1, argument);
	code = sqlite3_step(statement);
	if (code == SQLITE_ROW)
		*number = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

int database__measure(struct store *store, struct database_size *size)
{
	int64_t page_size, pages, unused;
	int code = database__number(store, "PRAGMA page_size", 0, &page_size);

	if (!code)
		code = database__number(store, "PRAGMA page_count", 0, &pages);
	if (!code)
		code = database__number(store, "PRAGMA freelist_count", 0, &unused);
	*size = (struct database_size){ 0 };
	if (!code)
		*size = (struct database_size){ pages * page_size, unused * page_size, page_size };
	return code;
}

int database__give_back(struct store *store, int64_t pages)
{
	char *sql = xasprintf("PRAGMA incremental_vacuum(%lld)", (long long)pages);
	int code = database__run(store, sql);

	free(sql);
	return code;
}

void database__roll_back(struct store *store)
{
	if (!sqlite3_get_autocommit(store->database))
		database__run(store, "ROLLBACK");
}

char *database__fail(struct store *store)
{
	char *wrong = database__explain(store);

	database__roll_back(store);
	return wrong;
}

/* Makes an empty database a store. */
static char *create_schema(struct store *store)
{
	char *numbers = xasprintf("PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT;",
				  APPLICATION_ID, SCHEMA_VERSION);
	/* The first before there is a table. */
	int code = database__run(store, "PRAGMA auto_vacuum = INCREMENTAL; BEGIN IMMEDIATE;");

	if (!code)
		code = database__run(store, schema);
	if (!code)
		code = database__run(store, numbers);
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

/* A folder may be written by others than who reads it: what is in the database is rows alone, never
 * anything that runs. */
static void trust_nothing(sqlite3 *database)
{
	sqlite3_db_config(database, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_db_config(database, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
	sqlite3_db_config(database, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
}

/* What kind of database it is; empty: one without anything. */
static int identify(struct store *store, int64_t *application, int64_t *version, bool *empty)
{
	int64_t tables = 0;
	int code = database__number(store, "PRAGMA application_id", 0, application);

	if (!code)
		code = database__number(store, "PRAGMA user_version", 0, version);
	if (!code)
		code = database__number(store, "SELECT count(*) FROM sqlite_schema", 0, &tables);
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
	store->version = SCHEMA_VERSION;
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
	store->version = version;
	if (version == SCHEMA_VERSION || wanted != STORE_WRITE)
		return NULL;
	store->version = SCHEMA_VERSION;
	return migrate(store);
}

/* For who writes: readers never wait for it, and after a crash of the machine some of the last
 * windows may be missing, but nothing is broken. */
static char *prepare_writing(struct store *store)
{
	int code = database__run(store, "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;"
					"PRAGMA journal_size_limit = 1048576;"
					"PRAGMA wal_autocheckpoint = 256;"
					"PRAGMA cache_size = -2048; PRAGMA temp_store = MEMORY;");

	return code ? database__explain(store) : NULL;
}

/* What runs here, under which names, is nobody's but its owner's: what is made is for him alone, as
 * are the files that SQLite makes beside it.  What is there keeps its permissions. */
static void make_private(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

	/* Why not, SQLite will say. */
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

/* Windows of two agents would overlap, and count what runs twice. */
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
		sqlite3_finalize(store->insert[table]);
		sqlite3_finalize(store->touch[table]);
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
