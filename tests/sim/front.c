#include "front.h"

#include "actors.h"
#include "disk.h"
#include "history.h"
#include "machine.h"
#include "mirror/directory/mirror_file.h"
#include "mirror/load/scratch_file.h"
#include "server/server.h"
#include "tls.h"
#include "trace.h"

#include <ftw.h>
#include <stdio.h>
#include <string.h>

static unsigned boots;
static char link_endpoint[64]; /* endpoint of the server behind */
/* Its mirror was damaged, and was there until then; 0: never. */
static int64_t voided_until_ns;

/* -- Its life -- */

/* The past of the first server never changes, whatever happens to its disk, so that only damage to
 * its own disk is a reason. A process that has died only finds that it cannot write any more. */
static void on_reset(void *ctx, const char *reason)
{
    if (machine_has_died(ctx))
        return;
    if (!machine_was_rotten(ctx) || strcmp(reason, "stored bytes of the mirror are damaged") != 0)
        violation("the server in front throws its mirror away: %s", reason);
    trace_line("the front throws its mirror away: %s", reason);
    voided_until_ns = CLOCK_NEVER;
    machine_void_mirror(ctx);
}

void front_begin(void)
{
    boots = 0;
    voided_until_ns = 0;
}

void front_starts(void)
{
    if (voided_until_ns == CLOCK_NEVER)
        voided_until_ns = actors_now();
}

bool front_has_void_mirror(int64_t since_ns)
{
    return voided_until_ns >= since_ns && voided_until_ns;
}

static void on_waiting(void *ctx, const char *reason)
{
    (void)ctx;
    trace_line("the front waits: %s", reason);
}

static void on_loading(void *ctx, const struct mirror_loaded *loaded)
{
    (void)ctx;
    trace_line("the front loads%s, %llu keys: %s", loaded->is_complete ? " (complete)" : "",
               (unsigned long long)loaded->keys, loaded->why);
}

static void on_following(void *ctx, const struct mirror_followed *followed)
{
    (void)ctx;
    trace_line("the front follows from revision %lld", (long long)followed->revision);
}

void front_configure(struct server_config *config, struct machine *machine, const char *user)
{
    snprintf(link_endpoint, sizeof(link_endpoint), "%s", sim_tls_endpoint(FRONT_LINK_ENDPOINT));
    config->clustered = true;
    config->cluster = (struct mirror_options){
        .upstream =
            {
                .endpoints = link_endpoint,
                .ca_file = sim_tls_ca_file(),
                .user = user,
                .password = user,
                .connect_timeout_ns = NS_PER_S,
                .keepalive_ns = NS_PER_S,
                .keepalive_timeout_ns = NS_PER_S,
            },
        .on_reset = on_reset,
        .on_waiting = on_waiting,
        .on_loading = on_loading,
        .on_following = on_following,
        .ctx = machine,
    };
}

void front_boot(void)
{
    boots++;
}

const char *front_endpoints(bool has_front, unsigned client)
{
    static const char *const endpoints[] = {
        FRONT_ENDPOINT,
        MACHINE_ENDPOINT,
        FRONT_ENDPOINT "," MACHINE_ENDPOINT,
        FRONT_ENDPOINT,
    };
    return has_front ? endpoints[client % COUNT_OF(endpoints)] : MACHINE_ENDPOINT;
}

/* -- In the end -- */

static vigil_call *read_all(vigil_client *client, int64_t revision)
{
    vigil_range_request request;
    vigil_range_request_init(&request);
    request.key = vigil_text(" ");
    request.range_end = vigil_text("~");
    request.revision = revision;
    request.serializable = revision != 0; /* from the mirror */
    vigil_call *call = vigil_range(client, &request);
    (void)vigil_call_run(call);
    return call;
}

static bool is_same(vigil_bytes a, vigil_bytes b)
{
    return slice_equal(slice_of(a.data, a.size), slice_of(b.data, b.size));
}

static bool is_same_kv(const vigil_kv *a, const vigil_kv *b)
{
    return is_same(a->key, b->key) && is_same(a->value, b->value) &&
           a->create_revision == b->create_revision && a->mod_revision == b->mod_revision &&
           a->version == b->version && a->lease == b->lease;
}

static void check_same(const vigil_range_response *behind, const vigil_range_response *front)
{
    if (front->kv_count != behind->kv_count)
        violation("the front has %zu keys at revision %lld, the server behind it has %zu",
                  front->kv_count, (long long)behind->header->revision, behind->kv_count);
    for (size_t i = 0; i < behind->kv_count; i++)
        if (!is_same_kv(&front->kvs[i], &behind->kvs[i]))
            violation("the front has another version of %.*s at revision %lld",
                      VIGIL_ARGS(behind->kvs[i].key), (long long)behind->header->revision);
}

void front_compare(vigil_client *client, vigil_client *behind_client)
{
    enum { ATTEMPTS_MAX = 60 };
    const char *fault = "";
    for (int i = 0; i < ATTEMPTS_MAX; i++) {
        vigil_call *behind = read_all(behind_client, 0), *front = NULL;
        const vigil_range_response *expected = vigil_range_result(behind), *got = NULL;
        if (expected) {
            front = read_all(client, expected->header->revision);
            got = vigil_range_result(front);
        }
        fault = vigil_call_error(front ? front : behind)->text;
        if (got)
            check_same(expected, got);
        vigil_call_free(front);
        vigil_call_free(behind);
        if (got)
            return;
        actor_sleep(NS_PER_S);
    }
    violation("the front has not the state of the server behind it after a minute: %s", fault);
}

/* -- What a mirror asks the system itself -- */

void __wrap_mirror_file_boot(char ret_boot[MIRROR_BOOT_BYTES]);
void __wrap_mirror_file_boot(char ret_boot[MIRROR_BOOT_BYTES])
{
    snprintf(ret_boot, MIRROR_BOOT_BYTES, "boot-%u", boots);
}

/* It is gone when the process ends, so that it needs no simulated disk. */
enum status __real_scratch_file_open(const char *directory, struct scratch_file **ret_file,
                                     struct error *error);
enum status __wrap_scratch_file_open(const char *directory, struct scratch_file **ret_file,
                                     struct error *error);
enum status __wrap_scratch_file_open(const char *directory, struct scratch_file **ret_file,
                                     struct error *error)
{
    (void)directory;
    return __real_scratch_file_open("/tmp", ret_file, error);
}

/* Removes a mirror. */
int __wrap_nftw(const char *path, __nftw_func_t fn, int descriptors, int flags);
int __wrap_nftw(const char *path, __nftw_func_t fn, int descriptors, int flags)
{
    struct disk *disk = disk_at(path);
    (void)fn, (void)descriptors, (void)flags;
    assert(disk);
    disk_remove_tree(disk, path);
    return 0;
}
