/*
 * Executes a program whose syncs can be made slow at any time:
 *
 *     slow_disk CONTROL PROGRAM ARGUMENT...
 *
 * CONTROL is a file with a uint64_t, the delay of each fsync and fdatasync in microseconds. The
 * kernel reports every such call to a child of ours (seccomp's user notifications), which lets it
 * continue after the delay, one after the other. So this works with every program, also with one
 * that does not use a C library. The program keeps our process id.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Returns the descriptor on which syncs of this process are reported, or -1. */
static int report_syncs(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fdatasync, 1, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fsync, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return -1;
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER,
                        &program);
}

static void wait_us(uint64_t us)
{
    struct timespec rest = {.tv_sec = (time_t)(us / 1000000),
                            .tv_nsec = (long)(us % 1000000) * 1000};
    while (nanosleep(&rest, &rest) != 0 && errno == EINTR)
        ;
}

/* Lets each reported sync continue after the delay. A thread that is gone by then has no answer. */
static void supervise(int listener, const volatile uint64_t *delay_us)
{
    for (;;) {
        struct seccomp_notif call;
        memset(&call, 0, sizeof(call));
        if (ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &call) != 0) {
            if (errno == EINTR || errno == ENOENT)
                continue;
            return;
        }
        if (*delay_us > 0)
            wait_us(*delay_us);
        struct seccomp_notif_resp answer = {.id = call.id,
                                            .flags = SECCOMP_USER_NOTIF_FLAG_CONTINUE};
        (void)ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
    }
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: slow_disk CONTROL PROGRAM ARGUMENT...\n");
        return 2;
    }
    int control = open(argv[1], O_RDONLY | O_CLOEXEC);
    void *delay = mmap(NULL, sizeof(uint64_t), PROT_READ, MAP_SHARED, control, 0);
    if (control < 0 || delay == MAP_FAILED) {
        perror(argv[1]);
        return 1;
    }
    pid_t parent = getpid();
    int listener = report_syncs();
    pid_t child = listener < 0 ? -1 : fork();
    if (child < 0) {
        perror("slow_disk");
        return 1;
    }
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        close(STDIN_FILENO);
        close(STDOUT_FILENO);
        close(STDERR_FILENO);
        if (getppid() == parent)
            supervise(listener, delay);
        return 0;
    }
    close(listener);
    execv(argv[2], argv + 2);
    perror(argv[2]);
    return 1;
}
