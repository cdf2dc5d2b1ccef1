/*
 * The tests of libvigil-kube against a real server: Vigil (tests/kube_client/vigil_test.py) or a
 * kube-apiserver (tests/kube/kube_client_test.py). Each test is a function that aborts when
 * something is wrong. It can ask the driver to do something to the server (ask). It finds the
 * server in VIGIL_KUBE_SERVER, and has a namespace to itself, VIGIL_NAMESPACE.
 */
#ifndef VIGIL_TESTS_KUBE_CLIENT_SUITE_H
#define VIGIL_TESTS_KUBE_CLIENT_SUITE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <vigil/kube.h>

struct suite_test {
    const char *name;
    void (*run)(void);
};

/* A group is run against every server, unless suite.c says otherwise. */
extern const struct suite_test call_tests[];
extern const struct suite_test discovery_tests[];
extern const struct suite_test identity_tests[];
extern const struct suite_test informer_fault_tests[];
extern const struct suite_test informer_restart_tests[];
extern const struct suite_test informer_tests[];
extern const struct suite_test restart_tests[];
extern const struct suite_test script_tests[];
extern const struct suite_test watch_restart_tests[];
extern const struct suite_test watch_tests[];

/* Ends the program with a message that names the place. */
#define CHECK(condition)                                                              \
    do {                                                                              \
        if (!(condition)) {                                                           \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                  \
        }                                                                             \
    } while (0)

/* The same about a call, whose error is printed. */
#define CHECK_RUN(call, condition)                 \
    do {                                           \
        if (!(condition))                          \
            fail_call((call), __FILE__, __LINE__); \
    } while (0)
void fail_call(const vigil_kube_call *call, const char *file, int line);

/* The call completes with this code; a wrong one is printed with its text. Frees the call. */
#define EXPECT(call, wanted) expect_code((call), (wanted), __FILE__, __LINE__)
void expect_code(vigil_kube_call *call, int wanted, const char *file, int line);
/* Runs the call, which the server refuses with this reason: "NotFound". Frees the call. */
#define EXPECT_REFUSAL(call, code, reason) \
    expect_refusal((call), (code), (reason), __FILE__, __LINE__)
void expect_refusal(vigil_kube_call *call, int code, const char *reason, const char *file,
                    int line);
/* Runs a call that must succeed. The caller frees it. */
vigil_kube_call *must_run(vigil_kube_call *call);

/* Waits until the driver has done it, for instance "restart". */
void ask(const char *what);

/* With the server and the credentials that the driver gives, and without a rate limit. */
void default_options(vigil_kube_options *options);
vigil_kube *new_kube(void);

/* Configmaps of the test's namespace; name may be NULL for the collection. */
vigil_kube_target configmap(const char *name);
/* A configmap with data: {"key": value} and the label test: NAME. The text is in a static buffer,
 * which the next call overwrites. */
vigil_bytes configmap_json(const char *name, const char *value);
void create_configmap(vigil_kube *kube, const char *name, const char *value);
/* The text at a path of an answer. The buffer is static. */
const char *text_at(const vigil_kube_call *call, const char *path);

/* A counter that threads wait for, at most a minute. */
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
void latch_wait(struct latch *latch, long count);

#endif
