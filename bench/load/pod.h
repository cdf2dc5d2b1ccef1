/*
 * The objects of the loads on the Kubernetes API: pods of a size, in the namespace default, each
 * bound to a node. Made of many small members, as real ones are, and not of one long string. And
 * ConfigMaps, of which a server has little to check.
 */
#ifndef VIGIL_LOAD_POD_H
#define VIGIL_LOAD_POD_H

#include "base/buf.h"

enum {
    BENCH_POD_BYTES_MIN = 512,
    BENCH_POD_DIGITS = 10,      /* digits of the numbers in the names of pods and nodes */
    BENCH_POD_TIME_DIGITS = 20, /* digits of the time in its annotation */
};

/* Where in the text of an object the digits stand that differ from one to the other. */
struct bench_pod_places {
    size_t name, node, time; /* node: 0 in a ConfigMap */
};

/* Appends one of `bytes` bytes (at least the minimum; a few more) with zeros for all digits. */
MUST_CHECK
enum status bench_pod_append(struct buf *out, size_t bytes, struct bench_pod_places *ret_places);

/* The same with one long text. */
MUST_CHECK
enum status bench_config_append(struct buf *out, size_t bytes, struct bench_pod_places *ret_places);

#define BENCH_CONFIGS_PATH "/api/v1/namespaces/default/configmaps"
#define BENCH_CONFIG_NAME "config-"
#define BENCH_PODS_PATH "/api/v1/namespaces/default/pods"
#define BENCH_POD_NAME "pod-"
#define BENCH_NODE_NAME "node-"

/* The number in decimal, with zeros before it. */
void bench_digits_write(uint8_t *at, unsigned digits, uint64_t number);

/* The time in the annotation of the object in this text; false: there is none. */
bool bench_pod_time(struct slice text, uint64_t *ret_time);

#endif
