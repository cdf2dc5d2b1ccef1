/*
 * The same work with several stores: Vigil's and LMDB's and SQLite's in this process, and a server
 * that is reached over the network. Prints what it took as one JSON object.
 *
 *     embedded_bench STORE PLACE WORK COUNT [THREADS]
 *
 * STORE is vigil, lmdb, sqlite (with a directory) or server (with an endpoint). WORK:
 *
 *     get     COUNT gets of one of KEYS keys, on one thread
 *     put     COUNT durable puts, each alone, on THREADS threads
 *     load    COUNT keys, many at once
 *     open    opens what load has made, and reads a key
 *     events  COUNT puts with ten watches, less what they take without (vigil)
 *     sync    COUNT writes of the size of a put, each with fdatasync: what the disk alone takes
 */
#include "stores.h"

#include "../clients/meter.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

enum { KEYS = 10000, THREADS_MAX = 256, AT_ONCE = 1000, SYNCED_BYTES = 384 };

static const struct store_ops *ops;
static const char *place;
static long per_thread;

static void fill(char value[VALUE_BYTES], long i)
{
    memset(value, 'a' + (int)(i % 26), VALUE_BYTES);
}

static void put_some(void *session, long from, long count, long at_once)
{
    char key[KEY_BYTES + 1], value[VALUE_BYTES];
    for (long i = 0; i < count; i++) {
        make_key(key, from + i);
        fill(value, i);
        ops->put(session, key, value, (i + 1) % at_once == 0 || i + 1 == count);
    }
}

static void load(long count)
{
    void *session = ops->open(place);
    put_some(session, 0, count, AT_ONCE);
    ops->close(session);
}

static void gets(long count)
{
    char key[KEY_BYTES + 1];
    load(KEYS);
    void *session = ops->open(place);
    uint64_t random = 88172645463325252;
    struct meter meter = start_meter();
    for (long i = 0; i < count; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        make_key(key, (long)(random % KEYS));
        ops->get(session, key);
    }
    report(&meter, count);
    ops->close(session);
}

static void *put_alone(void *arg)
{
    void *session = ops->join(arg);
    static _Atomic long next;
    put_some(session, atomic_fetch_add(&next, per_thread), per_thread, 1);
    ops->leave(session);
    return NULL;
}

static void puts_of_threads(long count, long threads)
{
    pthread_t ids[THREADS_MAX];
    void *session = ops->open(place);
    put_some(session, 0, 100, 1);
    per_thread = count / threads;
    struct meter meter = start_meter();
    for (long i = 0; i < threads; i++)
        must(pthread_create(&ids[i], NULL, put_alone, session) == 0, "a thread");
    for (long i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    report(&meter, per_thread * threads);
    ops->close(session);
}

static void open_loaded(void)
{
    char key[KEY_BYTES + 1];
    make_key(key, 1);
    struct meter meter = start_meter();
    void *session = ops->open(place);
    ops->get(session, key);
    report(&meter, 1);
    ops->close(session);
}

static void syncs(long count)
{
    char path[4096], bytes[SYNCED_BYTES] = {1};
    snprintf(path, sizeof(path), "%s/sync", place);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    for (long i = 0; i <= count; i++) /* as the log: what is written is there already */
        must(write(fd, bytes, sizeof(bytes)) == (ssize_t)sizeof(bytes), "a write");
    must(fsync(fd) == 0, "fsync");
    struct meter meter = start_meter();
    for (long i = 0; i < count; i++) {
        must(pwrite(fd, bytes, sizeof(bytes), i * SYNCED_BYTES) == (ssize_t)sizeof(bytes),
             "a write");
        must(fdatasync(fd) == 0, "fdatasync");
    }
    report(&meter, count);
    close(fd);
    unlink(path);
}

int main(int argc, char **argv)
{
    must(argc >= 5, "STORE PLACE WORK COUNT [THREADS]");
    ops = store_named(argv[1]);
    place = argv[2];
    const char *work = argv[3];
    long count = strtol(argv[4], NULL, 10), threads = argc > 5 ? strtol(argv[5], NULL, 10) : 1;
    must(ops && count > 0 && threads > 0 && threads <= THREADS_MAX, "arguments");
    if (strcmp(work, "get") == 0)
        gets(count);
    else if (strcmp(work, "put") == 0)
        puts_of_threads(count, threads);
    else if (strcmp(work, "load") == 0)
        load(count);
    else if (strcmp(work, "open") == 0)
        open_loaded();
    else if (strcmp(work, "sync") == 0)
        syncs(count);
    else if (strcmp(work, "events") == 0)
        vigil_events(place, count);
    else
        must(0, "a WORK");
    return 0;
}
