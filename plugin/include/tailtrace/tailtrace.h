// libtailtrace in C: record the branches of threads with the processor's own tracing, and ask a
// stopped thread what it did last; and log, without a stop and on any machine, who comes to a place
// or touches a variable. The C++ interface in tailtrace.hpp is made of this one.
//
// Functions that can fail return null, or a negative number, and store an error; pass null for
// `error` to do without. What a function returns for the caller to keep has a function of its own
// that frees it. The interface only grows: structures are filled up to the size that the caller
// says it knows.
//
// Threading: an object belongs to one thread at a time; different objects are independent.
//
// SPDX-License-Identifier: MIT
#ifndef TAILTRACE_TAILTRACE_H
#define TAILTRACE_TAILTRACE_H
#pragma once

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define TT_API __attribute__((visibility("default")))
#else
#define TT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

// What functions return and take; each has its own that frees it, tt_..._free.
typedef struct tt_error tt_error;
typedef struct tt_provider tt_provider;
typedef struct tt_snapshot tt_snapshot;
typedef struct tt_process tt_process;
typedef struct tt_lossless tt_lossless;
typedef struct tt_watch tt_watch;
typedef struct tt_alarm tt_alarm;

// "0.1.0".
TT_API const char* tt_version(void);

// What failed, why as measured, the fix, and what works without it; empty where there is nothing
// to say. The texts live as long as the error. The code is an exit status: 2 usage, 3 no usable
// engine, 4 permission, 7 a system call failed, 8 gone.
TT_API int tt_error_code(const tt_error* error);
TT_API const char* tt_error_what(const tt_error* error);
TT_API const char* tt_error_why(const tt_error* error);
TT_API const char* tt_error_fix(const tt_error* error);
TT_API const char* tt_error_now(const tt_error* error);
TT_API void tt_error_free(tt_error* error);

// A place that a debug register of the processor watches. Each takes one of a thread's four, which
// debuggers' hardware breakpoints and watchpoints take as well; with none free the error names who
// has them.
enum {
  TT_EXECUTE = 0,  // the thread comes to the instruction
  TT_WRITE = 1,    // it writes there
  TT_ACCESS = 2    // it reads or writes there
};
enum {
  TT_LOG = 0,  // the hit is logged, and the thread runs on
  TT_STOP = 1  // and it gets a SIGTRAP (si_code TRAP_PERF) at the instruction, which its tracer
               // sees and leaves out; Linux 5.13 and later, until the program executes another one
};
typedef struct tt_place {
  size_t size_bytes;  // sizeof(tt_place)
  uint64_t address;
  int on;              // TT_EXECUTE, TT_WRITE, TT_ACCESS
  int action;          // TT_LOG, TT_STOP
  uint32_t width;      // of data: 1, 2, 4 or 8 bytes at a multiple of that
  int flexible;        // 1: it gives its register to a place that is not, and gets one again
  uint64_t registers;  // to be logged with the hit: a bit for each, as <asm/perf_regs.h> counts
  const char* name;    // what messages call it; null: "a marker"
} tt_place;

// A hit. For data the address is that of the instruction behind the access, as the processor has
// it.
typedef struct tt_hit {
  size_t size_bytes;  // sizeof(tt_hit), set by the caller
  uint64_t number;    // of all hits of the place, from 0; a hole is hits that were not logged
  uint64_t address;   // of the instruction
  uint64_t time_ns;   // of perf's clock
  const uint64_t* registers;  // in the order of their bits; they live as long as the hit's list
  size_t register_count;
} tt_hit;

// What to record with, and how much of it. All zeros but the size, and null, are good settings.
typedef struct tt_options {
  size_t size_bytes;      // sizeof(tt_options)
  const char* hardware;   // "pt", "bts", "lbr"; null or "auto": the first that works
  uint64_t buffer_bytes;  // of trace for each thread, a power of two; 0: a good size
  uint64_t records;       // kept of each thread; 0: 65536
  // Places whose hits become records of kind marker in a provider's snapshots; `extra` of the
  // record is the index here. They are read when a thread is started.
  const tt_place* places;
  size_t place_count;
  // With Intel PT, the trace goes on when the thread comes to the first and pauses at the second:
  // no stop, a debug register each; 0: neither. Linux 6.13 and later.
  uint64_t resume_at;
  uint64_t pause_at;
  // 1: the kernel's code as well; Intel PT, thread by thread, with the rights for it.
  int kernel;
  // Of Intel PT, as sysfs names its settings, "cyc,mtc_period=5,psb_period=0": tsc, cyc,
  // cyc_thresh, mtc, mtc_period, psb_period, ptw, event, noretcomp. Null: good ones.
  const char* settings;
  // Address filters of Intel PT for recordings thread by thread, as the kernel takes them, several
  // separated by commas: "filter 0x1000/0x200@/path/to/file", the offset in the file and the size.
  // Null: none.
  const char* filters;
} tt_options;

// `options` may be null.
TT_API tt_provider* tt_provider_new(const tt_options* options, tt_error** error);
TT_API void tt_provider_free(tt_provider* provider);

// 0, or -1 with an error. Starting what is recorded already changes nothing; start a process again
// for threads that it has made since.
TT_API int tt_start_thread(tt_provider* provider, int32_t pid, int32_t tid, tt_error** error);
TT_API int tt_start_process(tt_provider* provider, int32_t pid, tt_error** error);
TT_API int tt_stop_thread(tt_provider* provider, int32_t pid, int32_t tid, tt_error** error);
TT_API int tt_stop_process(tt_provider* provider, int32_t pid, tt_error** error);

// The next thing that turned out otherwise than asked (a smaller buffer, other hardware); null when
// there is none. It is the caller's to free.
TT_API tt_error* tt_next_remark(tt_provider* provider);

// What a stopped thread did last. `pc` is the instruction to be executed next; 0: /proc is asked.
// `limit` is the most records to be taken; 0: all.
TT_API tt_snapshot* tt_snapshot_thread(tt_provider* provider, int32_t pid, int32_t tid, uint64_t pc,
                                       uint64_t limit, tt_error** error);
TT_API void tt_snapshot_free(tt_snapshot* snapshot);

// The same of all recorded threads of a process, which stand. Returns how many there are, or -1.
TT_API int tt_snapshot_process(tt_provider* provider, int32_t pid, uint64_t limit,
                               tt_error** error);
// Of the last call, by index from 0; the caller's to free. Null when there is no such thread.
TT_API tt_snapshot* tt_provider_thread(tt_provider* provider, size_t index);

// The process and the thread that a snapshot is of.
TT_API int32_t tt_snapshot_pid(const tt_snapshot* snapshot);
TT_API int32_t tt_snapshot_tid(const tt_snapshot* snapshot);
// What the thread is called, or was; empty when nobody knows.
TT_API const char* tt_snapshot_name(const tt_snapshot* snapshot);

// A whole process recorded by CPU: threads that come and go, and with `children` the processes that
// it makes. buffer_bytes is of each CPU; `hardware` is "pt" (also null and "auto"), "bts" or "lbr".
TT_API tt_process* tt_process_record(const tt_options* options, int32_t pid, int children,
                                     tt_error** error);
TT_API void tt_process_free(tt_process* process);
// What all of its threads did last, at most `limit` records of each (0: all); also of those that
// have ended. Threads may run: their history ends somewhere before now. Returns how many threads
// there are, or -1.
TT_API int tt_process_snapshot(tt_process* process, uint64_t limit, tt_error** error);
// Of the last call, by index from 0; the caller's to free. Null when there is no such thread.
TT_API tt_snapshot* tt_process_thread(tt_process* process, size_t index);

// Everything that a thread does, in a new file, as long as somebody drains the buffer fast enough.
// `hardware` is "pt" (also null and "auto") or "bts".
TT_API tt_lossless* tt_lossless_start(const tt_options* options, int32_t pid, int32_t tid,
                                      const char* path, tt_error** error);
TT_API void tt_lossless_free(tt_lossless* lossless);
// Waits until a quarter of the buffer is full, the thread ended, or the time is over (-1: never),
// and moves into the file what is there. Returns how many bytes, or -1.
TT_API int64_t tt_lossless_drain(tt_lossless* lossless, int timeout_ms, tt_error** error);
// Null as long as all is well; else that data was lost, or is about to be, and what to do. It is
// the caller's to free.
TT_API tt_error* tt_lossless_trouble(const tt_lossless* lossless);
// As tt_snapshot_thread, of all that was recorded.
TT_API tt_snapshot* tt_lossless_snapshot(tt_lossless* lossless, uint64_t pc, uint64_t limit,
                                         tt_error** error);

// The hits of places in one thread, by its number (0: the calling one), logged while it runs, each
// place into a log of its own of `log_bytes` (a power of two from 4096; 0: 65536) that keeps the
// newest; one takes 56 bytes and eight for each register.
TT_API tt_watch* tt_watch_new(int32_t tid, uint64_t log_bytes, tt_error** error);
TT_API void tt_watch_free(tt_watch* watch);
// From now on. Returns the place's number, from 0, or -1 with an error: with no register free, who
// has them.
TT_API int tt_watch_add(tt_watch* watch, const tt_place* place, tt_error** error);
// The newest hits of a place, oldest first, at most `limit` (0: all that are kept): returns how
// many; tt_watch_hit has them until the next call. -1 with an error.
TT_API int64_t tt_watch_read(tt_watch* watch, int place, uint64_t limit, tt_error** error);
// Of the place that was read last: how many hits there were in all, exact.
TT_API uint64_t tt_watch_count(const tt_watch* watch);
// Of what was read last, by index; 0, or -1 when there is none.
TT_API int tt_watch_hit(const tt_watch* watch, size_t index, tt_hit* hit);
// Whether a flexible place has no register now: 1 or 0; -1: there is no such place.
TT_API int tt_watch_waits(const tt_watch* watch, int place);
// Frees a register for somebody else, as for a debugger that wants one: the newest flexible place
// waits from here on. 0 when there is none. What it logged is kept.
TT_API int tt_watch_give_way(tt_watch* watch);
// Gives registers to places that wait, as far as there are any.
TT_API void tt_watch_retry(tt_watch* watch);
// As tt_next_remark: places that gave way.
TT_API tt_error* tt_watch_remark(tt_watch* watch);

// A trigger: somebody waits for the hits of a place, as to stop the thread and take a snapshot.
TT_API tt_alarm* tt_alarm_new(int32_t tid, const tt_place* place, tt_error** error);
TT_API void tt_alarm_free(tt_alarm* alarm);
// How many hits there are to be had since the last call, after the first of them or the time (-1:
// however long it takes); 0 also when the thread ended. -1 with an error. A hole in their numbers
// is hits that came faster than they were taken.
TT_API int64_t tt_alarm_wait(tt_alarm* alarm, int timeout_ms, tt_error** error);
// Of the last call, by index; 0, or -1 when there is none.
TT_API int tt_alarm_hit(const tt_alarm* alarm, size_t index, tt_hit* hit);
// Becomes readable with a hit: for poll().
TT_API int tt_alarm_fd(const tt_alarm* alarm);

// A transfer of control: 32 bytes, little-endian; RECORD.md has the kinds and flags.
typedef struct tt_record {
  uint64_t from;
  uint64_t to;
  uint64_t time;
  uint32_t insns;
  uint8_t kind;
  uint8_t flags;
  uint16_t extra;
} tt_record;

// All records, oldest first; they live as long as the snapshot.
TT_API const tt_record* tt_snapshot_records(const tt_snapshot* snapshot, size_t* count);
// The position of the first record: equal in every snapshot of its thread.
TT_API uint64_t tt_snapshot_first(const tt_snapshot* snapshot);
// 1 when nothing is older than the first record: the history begins where recording did.
TT_API int tt_snapshot_complete(const tt_snapshot* snapshot);
// "pt", "bts", "lbr".
TT_API const char* tt_snapshot_hardware(const tt_snapshot* snapshot);

// Executed instructions and gaps are numbered from 1, the oldest, to the size.
typedef struct tt_item {
  size_t size_bytes;  // sizeof(tt_item), set by the caller
  uint64_t number;
  uint64_t address;  // of the instruction; 0 for a gap
  uint64_t time;     // last known before it; 0 unknown
  int is_gap;
} tt_item;

// How many items there are.
TT_API uint64_t tt_snapshot_size(const tt_snapshot* snapshot);
// Fills in an item; 0, or -1 when there is no such number.
TT_API int tt_snapshot_item(tt_snapshot* snapshot, uint64_t number, tt_item* item);
// Writes the item as people read it ("call 0x401136", or what a gap lost), cut to `size`; returns
// how long it is without the zero at its end, or -1 when there is no such number.
TT_API int tt_snapshot_text(tt_snapshot* snapshot, uint64_t number, char* text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
