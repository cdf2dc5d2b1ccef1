/* The cases of etcd's clientv3 for watches that need three members, under their names;
 * clientv3_cases.txt has the list. */
#include "inbox.h"

/* The watches begin at a member that has lost the two others. */
static void watch_with_require_leader(void)
{
    vigil_client *client = client_of_member(0);
    struct inbox strict, patient;
    int64_t revision = put(client, "foo", "bar");
    ask("kill 1");
    ask("kill 2");
    ask("lose leader 0");
    vigil_watch_options options = watch_options("foo", revision);
    inbox_begin(&patient, client, &options);
    options.require_leader = 1;
    inbox_begin(&strict, client, &options);
    inbox_take_end(&strict, VIGIL_ERROR_NO_LEADER);
    inbox_take_value(&patient, "bar");
    ask("start");
    put(client, "foo", "again");
    inbox_take_value(&patient, "again");
    CHECK(inbox_is_empty(&strict));
    inbox_close(&strict);
    inbox_close(&patient);
    vigil_client_free(client);
}

/* The watch runs at a member that loses the two others. */
static void network_partition(bool leader)
{
    int isolated = (int)ask_number("leader");
    if (!leader)
        isolated = (isolated + 1) % 3;
    char what[32];
    vigil_client *client = client_of_member(isolated);
    struct inbox inbox;
    vigil_watch_options options = watch_options("foo", 0);
    options.require_leader = 1;
    inbox_open(&inbox, client, options);
    snprintf(what, sizeof(what), "isolate %d", isolated);
    ask(what);
    inbox_take_end(&inbox, VIGIL_ERROR_NO_LEADER);
    ask("continue");
    inbox_close(&inbox);
    vigil_client_free(client);
}

static void balancer_under_network_partition_watch_leader(void)
{
    network_partition(true);
}

static void balancer_under_network_partition_watch_follower(void)
{
    network_partition(false);
}

/* The leader stops as an operator stops it; the watch continues elsewhere. */
static void balancer_under_server_shutdown_watch(void)
{
    vigil_client *client = new_client();
    struct inbox inbox;
    int code;
    inbox_open_key(&inbox, client, "foo");
    ask("terminate leader");
    do {
        vigil_call *call = vigil_put(client, vigil_text("foo"), vigil_text("bar"), 0);
        vigil_call_set_timeout(call, 2000);
        code = vigil_call_run(call);
        vigil_call_free(call);
    } while (code != VIGIL_OK);
    inbox_take_value(&inbox, "bar");
    ask("start");
    inbox_close(&inbox);
    vigil_client_free(client);
}

/* Connections to one member after the other stay open and carry nothing any more. */
static void balancer_under_blackhole_keep_alive_watch(void)
{
    static const char *const silenced[] = {"silence 0", "silence 1", "silence 2"};
    vigil_options options;
    vigil_client *client, *writer = direct_client();
    struct inbox inbox;
    default_options(&options);
    options.keepalive_ms = 500;
    options.keepalive_timeout_ms = 300;
    options.connect_timeout_ms = 500;
    CHECK(vigil_client_new(&options, &client, NULL) == VIGIL_OK);
    inbox_open_key(&inbox, client, "foo");
    for (int i = 0; i < 3; i++) {
        char value[32];
        snprintf(value, sizeof(value), "bar%d", i);
        ask(silenced[i]);
        put(writer, "foo", value);
        inbox_take_value(&inbox, value);
        ask("release");
    }
    vigil_client_stats stats;
    vigil_client_get_stats(client, &stats, sizeof(stats));
    CHECK(stats.disconnects >= 1); /* one of the members was the watch's */
    inbox_close(&inbox);
    vigil_client_free(client);
    vigil_client_free(writer);
}

#define CASE(name)  \
    {               \
#name, name \
    }

const struct suite_test ported_cluster_tests[] = {
    CASE(watch_with_require_leader),
    CASE(balancer_under_network_partition_watch_leader),
    CASE(balancer_under_network_partition_watch_follower),
    CASE(balancer_under_server_shutdown_watch),
    CASE(balancer_under_blackhole_keep_alive_watch),
    {NULL, NULL},
};
