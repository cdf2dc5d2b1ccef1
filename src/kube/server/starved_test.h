/*
 * Requests whose memory ends anywhere: each is sent with a limit that grows by the smallest step
 * until it gets its usual answer. Until then the answer must say that there is no memory.
 */
#ifndef VIGIL_KUBE_SERVER_STARVED_TEST_H
#define VIGIL_KUBE_SERVER_STARVED_TEST_H

#include "kube/server/bed_test.h"

struct starved_request {
    const char *method, *path, *type, *body;
};

static size_t written_and_starved;

static int64_t revision(void)
{
    struct engine_status status;
    engine_status_get(bed->shard, &status);
    return status.revision;
}

/* The code of the answer. *limit is that of the API's calls or of their attempts. */
static unsigned starved_send(const struct starved_request *r, size_t *limit, size_t bytes)
{
    size_t usual = *limit;
    *limit = bytes;
    struct peer *peer = send(r->method, r->path, r->type, r->body);
    run();
    *limit = usual;
    unsigned code = peer->code;
    assert_true(code != 429 || said(peer, "\"retryAfterSeconds\":1"));
    leave(peer);
    buf_fini(&peer->answer);
    free(peer);
    bed->count--;
    return code;
}

/* A write gets its own answer or an error for lack of memory, whichever allocation fails. */
static void starve(const struct starved_request *r, size_t *limit, unsigned expected)
{
    int64_t before = revision();
    for (size_t bytes = ARENA_ALIGN;; bytes += ARENA_ALIGN) {
        unsigned code = starved_send(r, limit, bytes);
        if (code == expected)
            return;
        if (!kube_code_is_no_memory(code))
            fail_msg("%s %s %s with %zu bytes: %u instead of %u", r->method, r->path, r->body,
                     bytes, code, expected);
        if (revision() == before)
            continue;
        /* It was written, and there was no memory for its answer: 429 would make clients send it
         * again. */
        assert_int_equal(code, 500);
        written_and_starved++;
        return;
    }
}

#endif
