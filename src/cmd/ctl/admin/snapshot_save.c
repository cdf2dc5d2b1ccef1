/*
 * snapshot save: the store of one server into a file.
 *
 *     FILE.part ──► all parts arrived, digest correct, synced ──► renamed to FILE, directory synced
 *
 * So FILE is a complete snapshot or does not exist. Without --command-timeout there is no limit of
 * time.
 */
#include "base/clock.h"
#include "base/progress.h"
#include "cmd/ctl/admin/admin.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

struct save {
    struct ctl *ctl;
    vigil_client *client;
    const char *path;
    char part[PATH_MAX]; /* the temporary name */
    int fd;
    uint64_t bytes;
    int write_error; /* errno of a write that failed */
    char version[64];
    bool done;
    struct progress progress;
};

/* etcdctl's exit code for everything that goes wrong here. */
static int fail(const struct save *save, const char *what, int error)
{
    if (save->fd >= 0)
        close(save->fd);
    if (*save->part)
        unlink(save->part);
    return ctl_fail(save->ctl, CTL_INTERRUPTED, "%s: %s", what, admin_errno_text(error).text);
}

static bool write_all(int fd, const void *data, size_t size)
{
    const char *at = data;
    while (size) {
        ssize_t written = write(fd, at, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return false;
        at += written;
        size -= (size_t)written;
    }
    return true;
}

static int receive(vigil_call *call, const vigil_snapshot_part *part, void *user)
{
    struct save *save = user;
    if (part->version.size && part->version.size < sizeof(save->version)) {
        memcpy(save->version, part->version.data, part->version.size);
        save->version[part->version.size] = '\0';
    }
    if (!write_all(save->fd, part->blob.data, part->blob.size)) {
        save->write_error = errno;
        vigil_call_cancel(call);
        return VIGIL_PART_CONTINUE;
    }
    save->bytes += part->blob.size;
    progress_show(&save->progress, save->bytes, save->bytes + part->remaining_bytes);
    return VIGIL_PART_CONTINUE;
}

static void note_done(vigil_call *call, void *user)
{
    (void)call;
    ((struct save *)user)->done = true;
}

static int fail_with(const struct save *save, const vigil_error *error)
{
    if (save->write_error)
        return fail(save, "could not write snapshot", save->write_error);
    if (ctl_interrupted())
        return fail(save, "could not write snapshot", EINTR);
    close(save->fd);
    unlink(save->part);
    const char *text = save->ctl->style == CTL_ETCDCTL_3_7 ? ctl_rpc_error_text(save->ctl, error)
                                                           : ctl_error_text(save->ctl, error);
    return ctl_fail(save->ctl, CTL_INTERRUPTED, "%s", text);
}

/* The call, until it has completed or SIGINT arrives. */
static int fetch(struct save *save)
{
    struct ctl *ctl = save->ctl;
    vigil_call *call = vigil_snapshot(save->client, receive, save);
    if (options_source(ctl->given, "command-timeout") != OPTION_FROM_DEFAULT)
        vigil_call_set_timeout(call, ctl->globals.command_timeout_ns / NS_PER_MS);
    bool waits = vigil_call_start(call, note_done, save) == VIGIL_OK;
    while (waits && !save->done)
        waits = ctl_wait(save->client, -1);
    progress_end(&save->progress);
    const vigil_error *error = vigil_call_error(call);
    bool failed = !save->done || error->code != VIGIL_OK;
    int code = failed ? fail_with(save, error) : CTL_OK;
    vigil_call_free(call);
    return code;
}

/* A rename is durable when its directory is. */
static void sync_directory(const char *path)
{
    char copy[PATH_MAX];
    snprintf(copy, sizeof(copy), "%s", path);
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)fsync(fd);
    close(fd);
}

static int finish(struct save *save)
{
    if (fsync(save->fd) != 0)
        return fail(save, "could not fsync snapshot", errno);
    int fd = save->fd;
    save->fd = -1;
    if (close(fd) != 0)
        return fail(save, "could not close file descriptor", errno);
    if (rename(save->part, save->path) != 0) {
        char what[PATH_MAX + 64];
        snprintf(what, sizeof(what), "could not rename to %s", save->path);
        return fail(save, what, errno);
    }
    sync_directory(save->path);
    fprintf(save->ctl->out, "Snapshot saved at %s\n", save->path);
    if (*save->version && save->ctl->style != CTL_ETCDCTL_3_4)
        fprintf(save->ctl->out, "Server version %s\n", save->version);
    return CTL_OK;
}

int admin_snapshot_save(struct ctl *ctl)
{
    if (ctl->word_count != 1)
        return ctl_refuse(ctl, "snapshot save expects one argument%s",
                          ctl->style == CTL_ETCDCTL_3_4 ? "" : " <filename>");
    static struct save save; /* too large for a small stack */
    save = (struct save){.ctl = ctl, .path = ctl->words[0], .fd = -1};
    int code;
    save.client = ctl_client(ctl, &code);
    if (!save.client)
        return code;
    struct ctl_endpoints endpoints = ctl_endpoints(ctl);
    if (endpoints.count != 1)
        return ctl_fail(ctl, CTL_INTERRUPTED,
                        "snapshot must be requested to one selected node, not multiple [%s]",
                        admin_endpoints_text(&endpoints).text);
    int len = snprintf(save.part, sizeof(save.part), "%s.part", save.path);
    if (len < 0 || (size_t)len >= sizeof(save.part))
        return ctl_fail(ctl, CTL_INTERRUPTED, "the name of the file is too long");
    save.fd = open(save.part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, S_IRUSR | S_IWUSR);
    if (save.fd < 0)
        return ctl_fail(ctl, CTL_INTERRUPTED, "could not open %s (open %s: %s)", save.part,
                        save.part, admin_errno_text(errno).text);
    progress_init(&save.progress, stderr, "snapshot", NULL);
    save.progress.is_terminal = save.progress.is_terminal && !ctl_is_etcdctl(ctl);
    ctl_catch_signals();
    code = fetch(&save);
    return code == CTL_OK ? finish(&save) : code;
}
