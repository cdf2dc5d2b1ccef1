#include "front.h"

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

static unsigned boots;
static char link_endpoint[64]; /* endpoint of the server behind */

/* -- Its life -- */

/* The past of the first server never changes, whatever happens to its disk. A process that has died
 * only finds that it cannot write any more. */
static void on_reset(void *ctx, const char *reason)
{
    if (machine_has_died(ctx))
        return;
    violation("the server in front throws its mirror away: %s", reason);
}

static void on_waiting(void *ctx, const char *reason)
{
    (void)ctx;
    trace_line("the front waits: %s", reason);
}

static void on_loading(void *ctx, const struct cluster_loaded *loaded)
{
    (void)ctx;
    trace_line("the front loads%s, %llu keys: %s", loaded->is_complete ? " (complete)" : "",
               (unsigned long long)loaded->keys, loaded->why);
}

static void on_following(void *ctx, const struct cluster_followed *followed)
{
    (void)ctx;
    trace_line("the front follows from revision %lld", (long long)followed->revision);
}

void front_configure(struct server_config *config, struct machine *machine, const char *user)
{
    snprintf(link_endpoint, sizeof(link_endpoint), "%s", sim_tls_endpoint(FRONT_LINK_ENDPOINT));
    config->clustered = true;
    config->cluster = (struct cluster_options){
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

void front_set_link(struct sim *sim, bool exists)
{
    struct url url;
    struct error error;
    enum status status = url_parse(slice_from_text(FRONT_LINK_ENDPOINT), &url, &error);
    assert(status == ST_OK);
    sim_set_reachable(sim, &url.address, exists);
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
