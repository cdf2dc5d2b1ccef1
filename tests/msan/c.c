/* Functions of the C library that the memory sanitizer does not know yet. */
#include <sanitizer/msan_interface.h>
#include <sys/epoll.h>

/* Names that the linker makes from the library's. */
#define REAL(name) __real_##name
#define WRAP(name) __wrap_##name

int REAL(epoll_pwait2)(int fd, struct epoll_event *ret_events, int max,
                       const struct timespec *timeout, const sigset_t *signals);
int WRAP(epoll_pwait2)(int fd, struct epoll_event *ret_events, int max,
                       const struct timespec *timeout, const sigset_t *signals);

int WRAP(epoll_pwait2)(int fd, struct epoll_event *ret_events, int max,
                       const struct timespec *timeout, const sigset_t *signals)
{
    int count = REAL(epoll_pwait2)(fd, ret_events, max, timeout, signals);
    if (count > 0)
        __msan_unpoison(ret_events, (size_t)count * sizeof(*ret_events));
    return count;
}
