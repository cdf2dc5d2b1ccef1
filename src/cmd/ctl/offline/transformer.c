#include "cmd/ctl/offline/transformer.h"

#include "base/xalloc.h"
#include "cmd/ctl/kv/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { READ_BYTES = 64 * 1024 };

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

enum status transformer_start(struct transformer *transformer, const char *program,
                              struct error *ret_error)
{
    char reason[CHILD_REASON_BYTES];
    int pipes[2];
    *transformer = (struct transformer){.pid = -1, .from = -1, .to = -1};
    signal(SIGPIPE, SIG_IGN);
    pid_t pid = child_start_piped(program, pipes, reason);
    if (pid < 0)
        return error_set(ret_error, ST_NOT_FOUND, "%s", reason);
    *transformer = (struct transformer){.pid = pid, .from = pipes[0], .to = pipes[1]};
    if (fcntl(transformer->to, F_SETFL, O_NONBLOCK) != 0)
        return error_set(ret_error, ST_IO, "fcntl: %s", strerrordesc_np(errno));
    return ST_OK;
}

static enum status take(struct transformer *transformer, struct kv_frames *frames,
                        uint8_t bytes[READ_BYTES], struct error *ret_error)
{
    ssize_t got = read(transformer->from, bytes, READ_BYTES);
    if (got > 0)
        return kv_frames_feed(frames, slice_of(bytes, (size_t)got), ret_error);
    if (got == 0 || errno != EINTR)
        close_fd(&transformer->from);
    return ST_OK;
}

/* Until it has closed its output. */
static enum status exchange(struct transformer *transformer, struct slice nodes,
                            struct kv_frames *frames, struct error *ret_error)
{
    uint8_t *bytes = xmalloc(READ_BYTES);
    enum status status = ST_OK;
    while (transformer->from >= 0 && status == ST_OK) {
        struct pollfd fds[] = {
            {.fd = transformer->from, .events = POLLIN},
            {.fd = transformer->to, .events = POLLOUT}, /* -1 is skipped */
        };
        if (poll(fds, COUNT_OF(fds), -1) < 0 && errno != EINTR)
            status = error_set(ret_error, ST_IO, "poll: %s", strerrordesc_np(errno));
        if (status == ST_OK && fds[1].revents) {
            /* The input of the program is closed when it has got everything, or wants no more. */
            ssize_t put = nodes.len ? write(transformer->to, nodes.ptr, nodes.len) : 0;
            if (put > 0)
                nodes = slice_sub(nodes, (size_t)put, nodes.len - (size_t)put);
            if (nodes.len == 0 || (put < 0 && errno != EAGAIN && errno != EINTR))
                close_fd(&transformer->to);
        }
        if (status == ST_OK && fds[0].revents)
            status = take(transformer, frames, bytes, ret_error);
    }
    free(bytes);
    return status;
}

static enum status await_end(struct transformer *transformer, struct error *ret_error)
{
    char reason[CHILD_REASON_BYTES];
    int status;
    close_fd(&transformer->to);
    while (waitpid(transformer->pid, &status, 0) < 0)
        if (errno != EINTR)
            return error_set(ret_error, ST_IO, "waitpid: %s", strerrordesc_np(errno));
    transformer->pid = -1;
    if (child_exit_code(status, reason) == 0)
        return ST_OK;
    return error_set(ret_error, ST_INVALID, "%s", reason);
}

enum status transformer_run(struct transformer *transformer, struct slice nodes,
                            struct kv_frames *frames, struct error *ret_error)
{
    TRY(exchange(transformer, nodes, frames, ret_error));
    TRY(await_end(transformer, ret_error));
    return kv_frames_end(frames, ret_error);
}

void transformer_stop(struct transformer *transformer)
{
    close_fd(&transformer->to);
    close_fd(&transformer->from);
    if (transformer->pid < 0)
        return;
    kill(transformer->pid, SIGKILL);
    while (waitpid(transformer->pid, NULL, 0) < 0 && errno == EINTR)
        ;
    transformer->pid = -1;
}
