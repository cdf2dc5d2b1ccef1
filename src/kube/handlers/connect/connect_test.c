/* Requests to connect whose memory ends anywhere: what they answer without a kubelet is compared
 * with a real kube-apiserver in tests/kube/same_endpoints_test.py. */
#include "kube/handlers/connect/connect.h"

#include "kube/server/bed_test.h"

#define IN_DEFAULT "/api/v1/namespaces/default/"

static const struct {
    const char *path, *body;
} objects[] = {
    {IN_DEFAULT "pods", "{\"metadata\":{\"name\":\"free\"},\"spec\":{\"containers\":[{\"name\":"
                        "\"\\u0063\",\"image\":\"i\"}]}}"},
    {IN_DEFAULT "pods", "{\"metadata\":{\"name\":\"two\"},\"spec\":{\"nodeName\":\"n\\u006f\","
                        "\"containers\":[{\"name\":"
                        "\"\\u0063\",\"image\":\"i\"},{\"name\":\"\\u0064\",\"image\":\"i\"}]}}"},
    {IN_DEFAULT "pods", "{\"metadata\":{\"name\":\"lost\"},\"spec\":{\"nodeName\":\"n\\u006fne\","
                        "\"containers\":[{\"name\":"
                        "\"\\u0063\",\"image\":\"i\",\"ports\":[{\"containerPort\":8080}]}]}}"},
    {IN_DEFAULT "services", "{\"metadata\":{\"name\":\"s\"},\"spec\":{\"clusterIP\":\"10.0.0.50\","
                            "\"ports\":[{\"name\":\"\\u0061\","
                            "\"port\":80,\"targetPort\":8080}],\"selector\":{\"a\":\"b\"}}}"},
    {IN_DEFAULT "endpoints", "{\"metadata\":{\"name\":\"s\"},\"subsets\":[{\"addresses\":[{\"ip\":"
                             "\"10.1.2.\\u0033\",\"targetRef\":{"
                             "\"kind\":\"P\\u006fd\",\"namespace\":\"default\",\"name\":"
                             "\"l\\u006fst\"}}],\"ports\":[{\"name\":"
                             "\"\\u0061\",\"port\":8080}]}]}"},
    {"/api/v1/nodes", "{\"metadata\":{\"name\":\"no\"}}"},
    {"/api/v1/nodes", "{\"metadata\":{\"name\":\"bare\"}}"},
};

static const struct {
    const char *path, *body;
} statuses[] = {
    {IN_DEFAULT "pods/lost/status",
     "{\"status\":{\"podIP\":\"10.1.2.\\u0033\",\"podIPs\":[{\"ip\":\"10.1.2.\\u0033\"}]}}"},
    {"/api/v1/nodes/no/status",
     "{\"status\":{\"addresses\":[{\"type\":\"InternalIP\",\"address\":\"10.1.1.\\u0031\"}],"
     "\"daemonEndpoints\":{\"kubeletEndpoint\":{\"Port\":10250}}}}"},
    {"/api/v1/nodes/bare/status",
     "{\"status\":{\"addresses\":[{\"type\":\"Od\\u0064\",\"address\":\"10.1.1.\\u0031\"}]}}"},
};

static const struct {
    const char *path;
    unsigned code;
} requests[] = {
    {IN_DEFAULT "pods/none/log", 404},
    {IN_DEFAULT "pods/free/log", 204},
    {IN_DEFAULT "pods/free/exec", 400},
    {IN_DEFAULT "pods/two/log", 400},
    {IN_DEFAULT "pods/two/log?container=e", 400},
    {IN_DEFAULT "pods/two/log?container=d", 500},
    {IN_DEFAULT "pods/two/exec?container=c", 400},
    {IN_DEFAULT "pods/two/portforward", 400},
    {IN_DEFAULT "pods/lost/log", 404},
    {IN_DEFAULT "pods/lost/proxy", 301},
    {IN_DEFAULT "pods/http:lost:81/proxy/a", 503},
    {IN_DEFAULT "pods/a:b:c:d/proxy/a", 400},
    {"/api/v1/nodes/no/proxy/a", 503},
    {"/api/v1/nodes/bare/proxy/a", 500},
    {"/api/v1/nodes/none/proxy/a", 404},
    {IN_DEFAULT "services/s/proxy/a", 503},
    {IN_DEFAULT "services/s:a/proxy/a", 503},
    {IN_DEFAULT "services/s:80/proxy/a", 503},
    {IN_DEFAULT "services/s:81/proxy/a", 503},
    {IN_DEFAULT "services/none/proxy/a", 404},
};

/* The answer in `to`, with its code. */
static unsigned answer_to(const char *path, size_t bytes, struct buf *to)
{
    size_t usual = bed->api->call_bytes_max;
    bed->api->call_bytes_max = bytes;
    struct peer *peer = send_json("GET", path, "");
    run();
    bed->api->call_bytes_max = usual;
    unsigned code = peer->code;
    leave(peer);
    buf_fini(to);
    *to = peer->answer;
    free(peer);
    bed->count--;
    return code;
}

static bool same_text(const struct buf *a, const struct buf *b)
{
    return slice_equal(buf_slice(a), buf_slice(b));
}

/* With too little memory the answer says so; with more it is the usual one. */
static void starve(const char *path, unsigned expected)
{
    AUTO(buf_fini) struct buf usual = {0}, answer = {0};
    unsigned code = answer_to(path, bed->api->call_bytes_max, &usual);
    if (code != expected)
        fail_msg("%s: %u %.*s", path, code, SLICE_ARGS(buf_slice(&usual)));
    for (size_t bytes = ARENA_ALIGN;; bytes += ARENA_ALIGN) {
        code = answer_to(path, bytes, &answer);
        if (code == expected && same_text(&answer, &usual))
            return;
        if (code != 429)
            fail_msg("%s with %zu bytes: %u %.*s", path, bytes, code,
                     SLICE_ARGS(buf_slice(&answer)));
    }
}

static void an_answer_is_never_made_from_a_failed_allocation(void **state)
{
    (void)state;
    begin(3, 100);
    for (size_t i = 0; i < COUNT_OF(objects); i++)
        ask("POST", objects[i].path, objects[i].body, 201);
    for (size_t i = 0; i < COUNT_OF(statuses); i++) {
        struct peer *peer = send_patch(statuses[i].path, statuses[i].body);
        run();
        assert_answer(peer, 200, NULL);
    }
    for (size_t i = 0; i < COUNT_OF(requests); i++)
        starve(requests[i].path, requests[i].code);
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_answer_is_never_made_from_a_failed_allocation),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
