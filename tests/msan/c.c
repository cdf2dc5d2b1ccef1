/* Functions of the C library that the memory sanitizer does not know yet. */
#include <sanitizer/msan_interface.h>
#include <sys/epoll.h>

int __real_epoll_pwait2(int fd, struct epoll_event *ret_events, int max,
                        const struct timespec *timeout, const sigset_t *signals);
int __wrap_epoll_pwait2(int fd, struct epoll_event *ret_events, int max,
                        const struct timespec *timeout, const sigset_t *signals);

int __wrap_epoll_pwait2(int fd, struct epoll_event *ret_events, int max,
                        const struct timespec *timeout, const sigset_t *signals)
{
    int count = __real_epoll_pwait2(fd, ret_events, max, timeout, signals);
    if (count > 0)
        __msan_unpoison(ret_events, (size_t)count * sizeof(*ret_events));
    return count;
}
