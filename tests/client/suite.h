/*
 * The tests of libvigil against a real server, which tests/client/client_test.py starts. Each test
 * is a function that aborts when something is wrong. It can ask the driver to do something to the
 * server (ask), and it finds the endpoints in VIGIL_ENDPOINTS.
 */
#ifndef VIGIL_TESTS_CLIENT_SUITE_H
#define VIGIL_TESTS_CLIENT_SUITE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <vigil/vigil.h>

struct suite_test {
    const char *name;
    void (*run)(void);
};

extern const struct suite_test access_tests[];
extern const struct suite_test admin_tests[];
extern const struct suite_test cluster_tests[];
extern const struct suite_test credential_tests[];
extern const struct suite_test fault_tests[];
extern const struct suite_test kv_tests[];
extern const struct suite_test lease_tests[];
extern const struct suite_test life_tests[];
extern const struct suite_test null_tests[];
extern const struct suite_test object_end_tests[];
extern const struct suite_test object_fault_tests[];
extern const struct suite_test object_tests[];
extern const struct suite_test part_access_tests[];
extern const struct suite_test part_fault_tests[];
extern const struct suite_test part_tests[];
extern const struct suite_test ported_cluster_tests[];
extern const struct suite_test ported_v3_watch_tests[];
extern const struct suite_test ported_watch_tests[];
extern const struct suite_test process_tests[];
extern const struct suite_test queue_tests[];
extern const struct suite_test v2_tests[];
extern const struct suite_test watch_tests[];

/* Ends the program with a message that names the place. */
#define CHECK(condition)                                                              \
    do {                                                                              \
        if (!(condition)) {                                                           \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                  \
        }                                                                             \
    } while (0)

/* The call completes with this code; a wrong one is printed with its text. */
#define CHECK_CODE(call, wanted)                                                                  \
    do {                                                                                          \
        const vigil_error *error_ = vigil_call_error(call);                                       \
        if (error_->code != (wanted)) {                                                           \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, vigil_code_name(error_->code), \
                    error_->text);                                                                \
            abort();                                                                              \
        }                                                                                         \
    } while (0)

/* Waits until the driver has done it, for instance "restart"; targets.py has the list. */
void ask(const char *what);
/* The same for a question whose answer is a number: "watchers". */
long ask_number(const char *what);

/* With the endpoints and credentials that the driver gives. */
void default_options(vigil_options *options);
vigil_client *new_client(void);
/* With other endpoints; with VIGIL_DIRECT, where nothing breaks connections; with one of those. */
vigil_client *client_of(const char *endpoints);
vigil_client *direct_client(void);
vigil_client *client_of_member(int member);
int member_count(void);

/* Until the server has this many watches, of all clients. */
void wait_for_watchers(long count);

/* Deletes all keys, leases, users and roles: for a test that shares its server with others. */
void empty_the_store(void);

/* Runs a call that must succeed, frees it, and returns the revision of its header. */
int64_t must(vigil_call *call);
int64_t put(vigil_client *client, const char *key, const char *value);

/* The server answers requests for progress before it has sent everything, as etcd 3.4 of Debian. */
bool progress_is_early(vigil_client *client);

bool bytes_equal(vigil_bytes bytes, const char *text);

/* A counter that threads wait for. */
struct latch {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    long count;
};
#define LATCH_INIT                                             \
    {                                                          \
        PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0 \
    }
void latch_add(struct latch *latch, long n);
/* Aborts after a minute. */
void latch_wait(struct latch *latch, long count);
long latch_count(struct latch *latch);

#endif
