// Fails one call of a server's processes, as a full disk or a limit would: preloaded, and driven by failing_calls.py through
// a shared file.
//
// Counts the calls of each kind that each program makes while it is armed, and fails the one that was asked for. Calls that
// glibc makes for its own purposes (malloc's mmap, a stream's write) do not pass through here.

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

// In the order of `Program` and `Kind` in failing_calls.py.
enum program { COMMAND, TRITON, WORKER, GUARDIAN, STUB, LAUNCHER, PROGRAMS };
enum kind { OPEN, CREATE, WRITE, MAP, FORK, THREAD, DESCRIPTOR, KINDS };

// In the order of `_FIELDS`, `_COUNTS` and the call in failing_calls.py.
struct control {
    _Atomic int64_t armed, program, kind, error, number;
    _Atomic int64_t claimed_by;  // the process that fails its call, or 0
    _Atomic int64_t failed_in;   // the same, once `call` is written
    _Atomic int64_t counts[PROGRAMS][KINDS];
    char call[512];
};

static const struct {
    const char *argument;  // contained in the command line
    const char *begins;    // contained in the path whose opening ends the interpreter's own start; NULL: counted at once
} programs[PROGRAMS] = {
    [COMMAND] = {" -m penstock serve ", "/penstock/"},
    [TRITON] = {"bin/tritonserver ", NULL},
    [WORKER] = {"penstock.kernels.codecs.worker ", "/penstock/"},
    [GUARDIAN] = {"serving/guardian.py ", "guardian.py"},
    [STUB] = {"triton_python_backend_stub ", NULL},
    [LAUNCHER] = {"launcher/bash ", NULL},
};

static struct control *control;
static enum program program = PROGRAMS;
static atomic_bool counting;

__attribute__((constructor)) static void join_control(void) {
    const char *path = getenv("PENSTOCK_FAILING_CALLS");
    if (path == NULL) return;
    char line[4096];
    int file = syscall(SYS_openat, AT_FDCWD, "/proc/self/cmdline", O_RDONLY);
    ssize_t size = file < 0 ? 0 : syscall(SYS_read, file, line, sizeof line - 1);
    if (file >= 0) syscall(SYS_close, file);
    for (ssize_t at = 0; at < size; at++)
        if (line[at] == '\0') line[at] = ' ';
    line[size > 0 ? size : 0] = '\0';
    // The launcher starts the stub, whose name is in its command line: the first program is on the left.
    const char *first = NULL;
    for (int each = 0; each < PROGRAMS; each++) {
        const char *found = strstr(line, programs[each].argument);
        if (found != NULL && (first == NULL || found < first)) {
            first = found;
            program = each;
        }
    }
    file = syscall(SYS_openat, AT_FDCWD, path, O_RDWR);
    if (program == PROGRAMS || file < 0) return;
    void *shared = (void *)syscall(SYS_mmap, NULL, sizeof *control, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    syscall(SYS_close, file);
    if (shared == MAP_FAILED) return;
    control = shared;
    counting = programs[program].begins == NULL;
}

// Whether this call is the one to fail; its error is then set.
static bool fails(enum kind kind, const char *call, const char *argument, void *caller) {
    if (control == NULL) return false;
    if (!counting) {
        if (strstr(argument, programs[program].begins) == NULL) return false;
        counting = true;
    }
    if (!control->armed) return false;
    int64_t number = ++control->counts[program][kind];
    if (control->program != program || control->kind != kind || control->number != number) return false;
    int64_t nobody = 0, error = control->error;
    if (!atomic_compare_exchange_strong(&control->claimed_by, &nobody, getpid())) return false;
    Dl_info origin = {0};
    dladdr(caller, &origin);
    snprintf(control->call, sizeof control->call, "%s(%s) of %s", call, argument, origin.dli_fname ? origin.dli_fname : "?");
    control->failed_in = getpid();
    errno = (int)error;
    return true;
}

#define EXPORT __attribute__((visibility("default")))
#define CALLER __builtin_return_address(0)
#define REAL(name)                                                  \
    static typeof(name) *real;                                      \
    if (real == NULL) real = (typeof(name) *)dlsym(RTLD_NEXT, #name)

// -- opening ---------------------------------------------------------------------------------------------------------

static enum kind kind_of(int flags) { return (flags & O_CREAT) || (flags & O_TMPFILE) == O_TMPFILE ? CREATE : OPEN; }

#define WITH_MODE(flags)                                   \
    mode_t mode = 0;                                       \
    if (kind_of(flags) == CREATE) {                        \
        va_list arguments;                                 \
        va_start(arguments, flags);                        \
        mode = va_arg(arguments, mode_t);                  \
        va_end(arguments);                                 \
    }

#define OPENS(name)                                                      \
    EXPORT int name(const char *path, int flags, ...) {                  \
        REAL(name);                                                      \
        WITH_MODE(flags)                                                 \
        return fails(kind_of(flags), #name, path, CALLER) ? -1 : real(path, flags, mode); \
    }
#define OPENS_AT(name)                                                   \
    EXPORT int name(int folder, const char *path, int flags, ...) {      \
        REAL(name);                                                      \
        WITH_MODE(flags)                                                 \
        return fails(kind_of(flags), #name, path, CALLER) ? -1 : real(folder, path, flags, mode); \
    }
#define OPENS_STREAM(name)                                               \
    EXPORT FILE *name(const char *path, const char *mode) {              \
        REAL(name);                                                      \
        return fails(strpbrk(mode, "wa") ? CREATE : OPEN, #name, path, CALLER) ? NULL : real(path, mode); \
    }
// A call whose parameters are given as (types and names), and as (names).
#define WRAP(kind, result, failure, name, parameters, names, argument)   \
    EXPORT result name parameters {                                      \
        REAL(name);                                                      \
        return fails(kind, #name, argument, CALLER) ? failure : real names; \
    }

OPENS(open)
OPENS(open64)
OPENS_AT(openat)
OPENS_AT(openat64)
OPENS_STREAM(fopen)
OPENS_STREAM(fopen64)
extern int __open_2(const char *, int), __open64_2(const char *, int);
WRAP(OPEN, int, -1, __open_2, (const char *path, int flags), (path, flags), path)
WRAP(OPEN, int, -1, __open64_2, (const char *path, int flags), (path, flags), path)
WRAP(OPEN, DIR *, NULL, opendir, (const char *path), (path), path)
WRAP(CREATE, int, -1, mkdir, (const char *path, mode_t mode), (path, mode), path)
WRAP(CREATE, int, -1, mkdirat, (int folder, const char *path, mode_t mode), (folder, path, mode), path)
WRAP(CREATE, int, -1, mkstemp, (char *path), (path), path)
WRAP(CREATE, char *, NULL, mkdtemp, (char *path), (path), path)
WRAP(CREATE, int, -1, symlink, (const char *target, const char *path), (target, path), path)
WRAP(CREATE, int, -1, symlinkat, (const char *target, int folder, const char *path), (target, folder, path), path)
WRAP(CREATE, int, -1, link, (const char *target, const char *path), (target, path), path)
WRAP(CREATE, int, -1, rename, (const char *old, const char *path), (old, path), path)
WRAP(CREATE, int, -1, renameat, (int from, const char *old, int to, const char *path), (from, old, to, path), path)
WRAP(CREATE, int, -1, shm_open, (const char *path, int flags, mode_t mode), (path, flags, mode), path)

// -- writing: a full disk fails writes to files, not to pipes and sockets ----------------------------------------------

static bool is_file(int file) {
    struct stat found;
    return control != NULL && control->armed && fstat(file, &found) == 0 && S_ISREG(found.st_mode);
}

#define WRITES(result, failure, name, parameters, names)                 \
    EXPORT result name parameters {                                      \
        REAL(name);                                                      \
        return is_file(file) && fails(WRITE, #name, "", CALLER) ? failure : real names; \
    }
WRITES(ssize_t, -1, write, (int file, const void *data, size_t size), (file, data, size))
WRITES(ssize_t, -1, writev, (int file, const struct iovec *parts, int count), (file, parts, count))
WRITES(ssize_t, -1, pwrite, (int file, const void *data, size_t size, off_t at), (file, data, size, at))
WRITES(ssize_t, -1, pwrite64, (int file, const void *data, size_t size, off64_t at), (file, data, size, at))
WRITES(int, -1, ftruncate, (int file, off_t size), (file, size))
WRITES(int, -1, ftruncate64, (int file, off64_t size), (file, size))
WRITES(int, errno, posix_fallocate, (int file, off_t at, off_t size), (file, at, size))
WRITES(ssize_t, -1, copy_file_range, (int from, off64_t *at, int file, off64_t *to, size_t size, unsigned flags),
       (from, at, file, to, size, flags))
WRITES(ssize_t, -1, sendfile, (int file, int from, off_t *at, size_t size), (file, from, at, size))
WRITES(ssize_t, -1, sendfile64, (int file, int from, off64_t *at, size_t size), (file, from, at, size))

// -- mapping ---------------------------------------------------------------------------------------------------------

// CPython maps this much for the first frames of a new thread. If it cannot, the thread ends in silence, and who started it waits
// forever (`Thread.start` of 3.11): nothing that we could mend.
enum { FIRST_FRAMES = 16 << 10 };

#define MAPS(name, offset)                                               \
    EXPORT void *name(void *at, size_t size, int rights, int flags, int file, offset start) { \
        REAL(name);                                                      \
        bool first_frames = size == FIRST_FRAMES && (flags & MAP_ANONYMOUS); \
        bool failed = !first_frames && fails(MAP, #name, "", CALLER);    \
        return failed ? MAP_FAILED : real(at, size, rights, flags, file, start); \
    }
MAPS(mmap, off_t)
MAPS(mmap64, off64_t)

// -- processes and threads ---------------------------------------------------------------------------------------------

WRAP(FORK, pid_t, -1, fork, (void), (), "")
// The optimizer makes the last call a jump, so that the child returns on its parent's frame and not on this one.
WRAP(FORK, pid_t, -1, vfork, (void), (), "")
WRAP(FORK, int, errno, posix_spawn,
     (pid_t *process, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
      char *const arguments[], char *const variables[]),
     (process, path, actions, attributes, arguments, variables), path)
WRAP(FORK, int, errno, posix_spawnp,
     (pid_t *process, const char *path, const posix_spawn_file_actions_t *actions, const posix_spawnattr_t *attributes,
      char *const arguments[], char *const variables[]),
     (process, path, actions, attributes, arguments, variables), path)
WRAP(THREAD, int, errno, pthread_create,
     (pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument),
     (thread, attributes, run, argument), "")

// -- other descriptors -------------------------------------------------------------------------------------------------

WRAP(DESCRIPTOR, int, -1, pipe, (int ends[2]), (ends), "")
WRAP(DESCRIPTOR, int, -1, pipe2, (int ends[2], int flags), (ends, flags), "")
WRAP(DESCRIPTOR, int, -1, socket, (int domain, int type, int protocol), (domain, type, protocol), "")
WRAP(DESCRIPTOR, int, -1, socketpair, (int domain, int type, int protocol, int ends[2]), (domain, type, protocol, ends), "")
WRAP(DESCRIPTOR, int, -1, accept, (int listener, struct sockaddr *peer, socklen_t *size), (listener, peer, size), "")
WRAP(DESCRIPTOR, int, -1, accept4, (int listener, struct sockaddr *peer, socklen_t *size, int flags),
     (listener, peer, size, flags), "")
WRAP(DESCRIPTOR, int, -1, epoll_create, (int size), (size), "")
WRAP(DESCRIPTOR, int, -1, epoll_create1, (int flags), (flags), "")
WRAP(DESCRIPTOR, int, -1, eventfd, (unsigned start, int flags), (start, flags), "")
WRAP(DESCRIPTOR, int, -1, memfd_create, (const char *name, unsigned flags), (name, flags), name)
WRAP(DESCRIPTOR, int, -1, dup, (int file), (file), "")
WRAP(DESCRIPTOR, int, -1, dup3, (int file, int target, int flags), (file, target, flags), "")
