#include "embed/stores.h"

#include "base/fork.h"
#include "base/log/log.h"
#include "base/xalloc.h"
#include "client/driver/scope.h"
#include "store/datadir.h"

#include <errno.h>
#include <sys/stat.h>

enum entry_state { STORE_OPENING, STORE_OPEN, STORE_CLOSING };

#define TO(state) (1u << STORE_##state)

/* Drawn in stores.h. */
static const uint8_t moves[] = {
    [STORE_OPENING] = TO(OPEN) | TO(CLOSING),
    [STORE_OPEN] = TO(CLOSING),
    [STORE_CLOSING] = 0,
};

struct entry {
    struct embed_store store;
    dev_t device; /* device of the directory; a store is found by it and its inode */
    ino_t inode;
    unsigned forks; /* fork_count of the process that has opened it */

    /* Protected by the mutex. */
    enum entry_state state;
    unsigned clients;
    struct list in_stores; /* links stores.list */
};

static struct {
    pthread_mutex_t mutex; /* only for this, and never while something waits */
    pthread_cond_t changed;
    struct list list; /* struct entry; its links are NULL until first used */
} stores = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void lock_stores(void)
{
    pthread_mutex_lock(&stores.mutex);
}

static void unlock_stores(void)
{
    pthread_mutex_unlock(&stores.mutex);
}

/* With the mutex. */
static void move(struct entry *entry, enum entry_state next)
{
    assert(moves[entry->state] & (1u << next));
    assert((next == STORE_OPEN) == (entry->clients > 0));
    entry->state = next;
    pthread_cond_broadcast(&stores.changed);
}

/* -- Processes -- */

/* The threads that waited are not in the child. */
static void unlock_in_child(void)
{
    stores.changed = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    unlock_stores();
}

/* A child has a list that is complete. */
static void prepare(void)
{
    list_init(&stores.list);
    (void)pthread_atfork(lock_stores, unlock_stores, unlock_in_child);
    fork_watch();
    log_set_level(LOG_FATAL); /* a library does not print */
}

/* -- Entries -- */

/* The directory is created, so that threads that open a new one find each other. */
static enum status identify(const char *directory, struct stat *ret_found, struct error *error)
{
    TRY(datadir_make(fs_posix(), directory, error));
    if (stat(directory, ret_found) != 0)
        return error_set(error, status_from_errno(errno), "cannot open %s: %s", directory,
                         strerror(errno));
    return ST_OK;
}

static struct entry *find(const struct stat *id)
{
    struct entry *entry;
    LIST_FOREACH (entry, &stores.list, in_stores)
        if (entry->device == id->st_dev && entry->inode == id->st_ino)
            return entry;
    return NULL;
}

/* With the mutex: waits until it is open or gone. NULL: there is none. */
static struct entry *find_settled(const struct stat *id)
{
    struct entry *entry;
    while ((entry = find(id)) && entry->state != STORE_OPEN && entry->forks == fork_count() &&
           !driver_scope_has(&entry->store))
        pthread_cond_wait(&stores.changed, &stores.mutex);
    return entry;
}

static enum status join(struct entry *entry, struct error *error)
{
    const char *failure = embed_store_failure(&entry->store);
    if (entry->forks != fork_count())
        return error_set(error, ST_IN_USE,
                         "the store is open in the process from which this one was forked");
    if (driver_scope_has(&entry->store))
        return error_set(error, ST_CANCELED,
                         "a store cannot be opened inside its own callback for log or on_failure");
    if (failure)
        return error_set(error, ST_IN_USE, "%s; free all clients of the store first", failure);
    if (entry->clients == VIGIL_EMBEDDED_CLIENTS_MAX)
        return error_set(error, ST_LIMIT, "the store has %d clients, which is the limit",
                         VIGIL_EMBEDDED_CLIENTS_MAX);
    entry->clients++;
    return ST_OK;
}

static struct entry *entry_new(const struct stat *id)
{
    struct entry *entry = xcalloc(1, sizeof(*entry));
    entry->device = id->st_dev;
    entry->inode = id->st_ino;
    entry->forks = fork_count();
    list_push_back(&stores.list, &entry->in_stores);
    return entry;
}

static void entry_close(struct entry *entry)
{
    embed_store_fini(&entry->store);
    lock_stores();
    list_remove(&entry->in_stores);
    pthread_cond_broadcast(&stores.changed);
    unlock_stores();
    free(entry);
}

/* It is in the list, and other threads wait for what becomes of it. */
static enum status entry_open(struct entry *entry, const char *directory,
                              const vigil_embedded_options *options, struct error *error)
{
    enum status status = embed_store_init(&entry->store, directory, options, error);
    lock_stores();
    entry->clients = status == ST_OK ? 1 : 0;
    move(entry, status == ST_OK ? STORE_OPEN : STORE_CLOSING);
    unlock_stores();
    if (status != ST_OK)
        entry_close(entry);
    return status;
}

enum status embed_stores_enter(const char *directory, const vigil_embedded_options *options,
                               struct embed_store **ret_store, struct error *error)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct stat id;
    pthread_once(&once, prepare);
    TRY(identify(directory, &id, error));
    lock_stores();
    struct entry *entry = find_settled(&id);
    bool is_new = !entry;
    enum status status = entry ? join(entry, error) : ST_OK;
    if (is_new)
        entry = entry_new(&id);
    unlock_stores();
    if (is_new)
        status = entry_open(entry, directory, options, error);
    if (status == ST_OK)
        *ret_store = &entry->store;
    return status;
}

void embed_stores_leave(struct embed_store *store)
{
    struct entry *entry = CONTAINER_OF(store, struct entry, store);
    lock_stores();
    bool last = --entry->clients == 0;
    if (last)
        move(entry, STORE_CLOSING);
    unlock_stores();
    if (last)
        entry_close(entry);
}
