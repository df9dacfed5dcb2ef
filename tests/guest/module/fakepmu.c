// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * fakepmu: stand-ins for the intel_pt and intel_bts AUX-area PMUs, for a
 * guest kernel on a machine (or an emulator) that has neither.
 *
 * and, when the kernel has no hardware PMU driver of its own, for the "cpu" PMU
 * (PERF_TYPE_HARDWARE / PERF_TYPE_RAW): the old way to BTS (branch-instructions,
 * period 1, sample IP|ADDR) and last-branch-record samples
 * (PERF_SAMPLE_BRANCH_STACK).
 *
 * Two sources of trace bytes, chosen by the module parameter "mode":
 *
 *   step (1, default)  the traced task is single-stepped (EFLAGS.TF) inside
 *                      the kernel, and every step is encoded as Intel PT
 *                      packets / 24-byte BTS records: the trace is a TRUE
 *                      trace of the real task, at its real addresses.
 *   playback (0)       each scheduling window (pmu::start .. pmu::stop) copies
 *                      the next "play_chunk" bytes of a blob that was written
 *                      to debugfs fakepmu/play_pt or fakepmu/play_bts.
 *
 * What is NOT simulated: nothing of the perf core.  Rings, AUX mapping,
 * aux_head, PERF_RECORD_AUX, PERF_RECORD_ITRACE_START, exclusivity, inherit,
 * address filters, context switches and ptrace stops are the kernel's own.
 * The head/offset rules of the two real drivers in overwrite ("snapshot") mode
 * are reproduced here: aux_head is an offset inside the buffer for both, and
 * BTS never writes the last (size % 24) bytes.
 *
 * Written from scratch for this project; MIT or GPL-2.0, as its user likes.  It
 * calls EXPORT_SYMBOL_GPL symbols and is loaded into test guests only.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt
#include <linux/capability.h>
#include <linux/cpumask.h>
#include <linux/debugfs.h>
#include <linux/kdebug.h>
#include <linux/kprobes.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/perf_event.h>
#include <linux/sched/task_stack.h>
#include <linux/slab.h>
#include <linux/tracepoint.h>
#include <linux/uaccess.h>
#include <linux/version.h>
#include <linux/vmalloc.h>
#include <asm/debugreg.h>
#include <asm/ptrace.h>
#include <asm/trapnr.h>
#include <asm/tsc.h>

#define BTS_REC 24
#define BTS_MARGIN 4080		/* from the interrupt's threshold to where the hardware stops */
#define RETSTACK 64
#define MAX_FILTERS 4
/* As CPUID 15H would say: so many ticks of the TSC in one of the crystal clock, which MTC and TMA count. */
#define TSC_PER_ART 84
/* config bits */
#define CFG_CYC BIT(1)
#define CFG_FUP_ON_PTW BIT(5)
#define CFG_MTC BIT(9)
#define CFG_TSC BIT(10)
#define CFG_PTW BIT(12)
#define MTC_PERIODS 0x249
#define CYC_THRESHOLDS 0x3f

/* ---- knobs: /sys/module/fakepmu/parameters/ ----------------------------- */
static int mode = 1;
module_param(mode, int, 0644);
MODULE_PARM_DESC(mode, "1 = encode the real task by single-stepping, 0 = play back debugfs blobs");
static unsigned long play_chunk = 4096;
module_param(play_chunk, ulong, 0644);
MODULE_PARM_DESC(play_chunk, "playback: bytes per scheduling window");
static bool play_loop = true;
module_param(play_loop, bool, 0644);
static unsigned int inject_flags;
module_param(inject_flags, uint, 0644);
MODULE_PARM_DESC(inject_flags, "PERF_AUX_FLAG_* bits ORed into the next inject_count stops (1 TRUNCATED, 4 PARTIAL, 8 COLLISION)");
static unsigned int inject_count;
module_param(inject_count, uint, 0644);
static unsigned long ovf_every;
module_param(ovf_every, ulong, 0644);
MODULE_PARM_DESC(ovf_every, "every so many steps: lose ovf_lose steps and emit OVF (0 = never)");
static unsigned long ovf_lose = 16;
module_param(ovf_lose, ulong, 0644);
static bool bts_leak = true;
module_param(bts_leak, bool, 0644);
MODULE_PARM_DESC(bts_leak, "BTS: emit kernel->user records on return to user code, as hardware does");
static bool cpu_pmu_on = true;
module_param_named(cpu_pmu, cpu_pmu_on, bool, 0444);
MODULE_PARM_DESC(cpu_pmu, "register a stand-in for the core PMU too, if the kernel has none");
static unsigned int lbr_nr = 32;
module_param(lbr_nr, uint, 0644);
MODULE_PARM_DESC(lbr_nr, "depth of the last branch record stack (8, 16, 32; AMD 16)");
static unsigned int start_errno;
module_param(start_errno, uint, 0644);
MODULE_PARM_DESC(start_errno, "perf_event_open fails with this errno (test of error paths)");
static unsigned long truth_bytes = 32ul << 20;
module_param(truth_bytes, ulong, 0444);
MODULE_PARM_DESC(truth_bytes, "size of the ground-truth log (u64 per executed instruction)");
static unsigned long n_steps, n_starts, n_dropped;
module_param(n_steps, ulong, 0444);
module_param(n_starts, ulong, 0444);
module_param(n_dropped, ulong, 0444);

/* A physically contiguous piece of a BTS buffer: where its records begin and end. */
struct fk_piece { u64 begin, end; };

/* ---- one AUX buffer (pmu::setup_aux) ------------------------------------- */
struct fk_buf {
	void **pages;
	bool snapshot;
	u64 size, mask;
	u64 cap;	/* bytes that are ever written: size, or size - size % 24 */
	u64 pos;	/* write offset inside the buffer */
	/* BTS that does not overwrite: the hardware knows one piece at a time, and the interrupt moves it on */
	struct fk_piece *piece;
	u32 npieces, at;
	u64 threshold, end;	/* there the interrupt comes, and there the hardware stops */
	/* PT: what the packets refer to stands in the stream, whichever of several events writes it */
	u64 last_ip;
	u32 tnt, ntnt;
	u64 since_psb;
	u64 cyc_at, mtc_at;	/* the TSC at the last CYC, and the crystal clock at the last MTC */
	u64 rs[RETSTACK];
	u32 rn;
};

/* One running AUX transaction per CPU and PMU. */
struct fk_cpu {
	struct perf_output_handle handle;
	struct fk_buf *buf;
	u64 written, limit;
	bool active;	/* between begin and end */
	bool stopped;	/* out of space: hardware would have stopped */
};

struct fk_range { u64 a, b; };

/* Per-event generator state, event->pmu_private is not free: own pointer. */
struct fk_gen {
	bool paused;
	u64 play_off;
	/* PT only */
	bool pge;	/* PacketEn */
	bool seen_psb;
	u64 lose;
	struct fk_range range[MAX_FILTERS];
	u32 nrange;
};

static DEFINE_PER_CPU(struct fk_cpu, pt_cpu);
static DEFINE_PER_CPU(struct fk_cpu, bts_cpu);
static DEFINE_PER_CPU(u64, cur_ip);	/* address of current's next user instruction, see user_ip() */
static DEFINE_PER_CPU(u64, came_ip);	/* the same of a thread that came, until it is in cur_ip; 0: it is */
static DEFINE_PER_CPU(bool, bts_return);	/* the kernel's return to user code is not recorded yet */
static struct pmu pt_pmu, bts_pmu;

static void set_user_ip(u64 ip)
{
	this_cpu_write(cur_ip, ip);
	this_cpu_write(came_ip, 0);
}
/*
 * Threads whose events were inherited change places without any event being stopped and started: where the second
 * one goes on is known from the switch alone.
 */
static u64 user_ip(void)
{
	u64 came = this_cpu_read(came_ip);

	return came ? came : this_cpu_read(cur_ip);
}
static void on_switch(void *d, bool preempt, struct task_struct *prev, struct task_struct *next, unsigned int state)
{
	set_user_ip(user_ip());		/* prev's events are stopped behind this */
	if (next->mm)
		this_cpu_write(came_ip, task_pt_regs(next)->ip);
}

static inline struct fk_gen *gen_of(struct perf_event *e)
{
	return (struct fk_gen *)e->hw.event_base;
}

/* ---- ground truth and playback blobs (debugfs) --------------------------- */
static u64 *truth;
static atomic_long_t truth_n = ATOMIC_LONG_INIT(0);
struct blob { u8 *data; size_t len, cap; };
static struct blob play_pt, play_bts;
static struct dentry *dbg;

static ssize_t blob_write(struct file *f, const char __user *u, size_t n, loff_t *pos)
{
	struct blob *b = f->private_data;

	if (*pos + n > b->cap)
		return -ENOSPC;
	if (copy_from_user(b->data + *pos, u, n))
		return -EFAULT;
	*pos += n;
	b->len = *pos;
	return n;
}
static int blob_open(struct inode *i, struct file *f)
{
	struct blob *b = f->private_data = i->i_private;

	if (f->f_flags & O_TRUNC)
		b->len = 0;
	return 0;
}
static const struct file_operations blob_ops = {
	.owner = THIS_MODULE, .open = blob_open, .write = blob_write, .llseek = default_llseek,
};
static ssize_t truth_read(struct file *f, char __user *u, size_t n, loff_t *pos)
{
	unsigned long held = min_t(unsigned long, atomic_long_read(&truth_n), truth_bytes / sizeof(u64));

	return simple_read_from_buffer(u, n, pos, truth, held * sizeof(u64));
}
static ssize_t truth_write(struct file *f, const char __user *u, size_t n, loff_t *pos)
{
	atomic_long_set(&truth_n, 0);	/* any write resets the log */
	return n;
}
static const struct file_operations truth_ops = {
	.owner = THIS_MODULE, .open = simple_open, .read = truth_read, .write = truth_write,
	.llseek = default_llseek,
};
static inline void truth_put(u64 ip)
{
	long at = atomic_long_fetch_inc(&truth_n);

	/* addresses have 48 bits, and the last of them again and again; the thread stands above them */
	if (truth && at < truth_bytes / sizeof(u64))
		truth[at] = (ip & GENMASK_ULL(47, 0)) | (u64)current->pid << 48;
}

/* ---- byte sink ------------------------------------------------------------ */
static void put_bytes(struct fk_cpu *c, const void *p, u32 n)
{
	struct fk_buf *b = c->buf;
	const u8 *s = p;

	if (c->stopped)
		return;
	if (!b->snapshot && (b->piece ? b->pos + n > b->end : c->written + n > c->limit)) {
		c->stopped = true;	/* ToPA STOP / BTS absolute maximum */
		n_dropped++;
		return;
	}
	c->written += n;
	while (n--) {
		((u8 *)b->pages[b->pos >> PAGE_SHIFT])[b->pos & ~PAGE_MASK] = *s++;
		if (++b->pos >= b->cap && !b->piece)
			b->pos = 0;
	}
}

/* ---- Intel PT encoder ------------------------------------------------------ */
enum kind { K_OTHER, K_COND, K_RET, K_CALL, K_CALL_IND, K_JMP, K_JMP_IND, K_FAR };

static void pt_put(struct fk_cpu *c, struct fk_gen *g, const void *p, u32 n)
{
	c->buf->since_psb += n;
	put_bytes(c, p, n);
}
static u64 pt_config(struct fk_cpu *c)
{
	return c->handle.event->attr.config;
}
/*
 * In front of every packet of what the processor does: the cycles since the last CYC.  The core runs at the nominal
 * frequency here, as CBR says, so that its cycles are those of the TSC.
 */
static void pt_cyc(struct fk_cpu *c, struct fk_gen *g, u64 tsc)
{
	u64 config = pt_config(c), n = tsc - c->buf->cyc_at;
	u32 threshold = (config >> 19) & 15;
	u8 pkt[10];
	u32 len = 0;

	if (!(config & CFG_CYC) || !n || (threshold && n < 1ull << (threshold - 1)))
		return;
	c->buf->cyc_at = tsc;
	pkt[len++] = (n & 31) << 3 | (n > 31) << 2 | 3;
	for (n >>= 5; n; n >>= 7)
		pkt[len++] = (n & 127) << 1 | (n > 127);
	pt_put(c, g, pkt, len);
}
static void pt_flush_at(struct fk_cpu *c, struct fk_gen *g, u64 tsc)
{
	u8 v;

	if (!c->buf->ntnt)
		return;
	pt_cyc(c, g, tsc);
	v = ((1u << c->buf->ntnt) | c->buf->tnt) << 1;
	c->buf->ntnt = c->buf->tnt = 0;
	pt_put(c, g, &v, 1);
}
static void pt_tsc(struct fk_cpu *c, struct fk_gen *g, u64 now)
{
	u64 config = pt_config(c), v, art = now / TSC_PER_ART;
	u32 fast = now % TSC_PER_ART;

	if (!(config & CFG_TSC))
		return;
	v = (now << 8) | 0x19;
	pt_put(c, g, &v, 8);
	if (config & CFG_MTC) {		/* TMA: where between two ticks of the crystal clock that was */
		u8 tma[7] = { 2, 0x73, art, art >> 8, 0, fast, fast >> 8 };

		pt_put(c, g, tma, sizeof(tma));
		c->buf->mtc_at = art;
	}
}
static void pt_resync(struct fk_cpu *c, struct fk_gen *g, u64 now)
{
	pt_cyc(c, g, now);
	c->buf->cyc_at = now;
	pt_tsc(c, g, now);
}
/* Every so many ticks of the crystal clock a packet with eight of its bits, here before the next one that is sent. */
static void pt_mtc(struct fk_cpu *c, struct fk_gen *g, u64 tsc)
{
	u64 config = pt_config(c), now = tsc / TSC_PER_ART, tick;
	u32 period = (config >> 14) & 15;

	if (!(config & CFG_MTC) || now >> period == c->buf->mtc_at >> period)
		return;
	pt_flush_at(c, g, max(c->buf->cyc_at, (((c->buf->mtc_at >> period) + 1) << period) * TSC_PER_ART));
	if ((now >> period) - (c->buf->mtc_at >> period) > 255) {	/* it stood still: eight bits do not tell */
		pt_resync(c, g, tsc);
		return;
	}
	for (tick = (c->buf->mtc_at >> period) + 1; tick <= now >> period; tick++) {
		u8 mtc[2] = { 0x59, tick };

		pt_cyc(c, g, max(c->buf->cyc_at, (tick << period) * TSC_PER_ART));
		pt_put(c, g, mtc, sizeof(mtc));
	}
	c->buf->mtc_at = now;
}
/* What the processor did until now, in the order of time: no packet passes an MTC that is due. */
static u64 pt_flush(struct fk_cpu *c, struct fk_gen *g)
{
	u64 now = rdtsc();

	pt_mtc(c, g, now);
	pt_flush_at(c, g, now);
	return now;
}
static void pt_tnt(struct fk_cpu *c, struct fk_gen *g, int taken)
{
	c->buf->tnt = (c->buf->tnt << 1) | !!taken;
	if (++c->buf->ntnt == 6)
		pt_flush(c, g);
}
enum { OP_TIP = 0x0d, OP_PGE = 0x11, OP_PGD = 0x01, OP_FUP = 0x1d };
static void pt_put_ip(struct fk_cpu *c, struct fk_gen *g, u8 op, u64 ip, bool suppress)
{
	u8 pkt[9];
	int ipb, n;

	if (suppress) {
		ipb = 0, n = 0;
	} else if ((ip >> 16) == (c->buf->last_ip >> 16)) {
		ipb = 1, n = 2;
	} else if ((ip >> 32) == (c->buf->last_ip >> 32)) {
		ipb = 2, n = 4;
	} else if ((ip >> 48) == (c->buf->last_ip >> 48)) {
		ipb = 4, n = 6;		/* bits 47:0, upper bits from last_ip */
	} else if ((u64)((s64)(ip << 16) >> 16) == ip) {
		ipb = 3, n = 6;		/* bits 47:0, sign-extended */
	} else {
		ipb = 6, n = 8;
	}
	pkt[0] = op | (ipb << 5);
	memcpy(pkt + 1, &ip, n);
	if (n)
		c->buf->last_ip = ip;
	pt_put(c, g, pkt, 1 + n);
}
static void pt_ip(struct fk_cpu *c, struct fk_gen *g, u8 op, u64 ip, bool suppress)
{
	u64 now = pt_flush(c, g);

	if (op != OP_FUP)
		pt_cyc(c, g, now);
	pt_put_ip(c, g, op, ip, suppress);
}
static void pt_psb(struct fk_cpu *c, struct fk_gen *g, struct perf_event *e, u64 fup, bool lm)
{
	static const u8 psb[16] = { 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82, 2, 0x82 };
	const u8 cbr[4] = { 2, 3, 24, 0 }, modex[2] = { 0x99, lm ? 1 : 2 }, end[2] = { 2, 0x23 };
	u64 now;

	now = rdtsc();
	pt_flush_at(c, g, now);
	if (g->seen_psb)
		pt_cyc(c, g, now);
	c->buf->cyc_at = now;
	pt_put(c, g, psb, 16);
	c->buf->since_psb = 16;
	c->buf->last_ip = 0;
	c->buf->rn = 0;
	g->seen_psb = true;
	pt_tsc(c, g, now);
	pt_put(c, g, cbr, 4);
	pt_put(c, g, modex, 2);
	if (g->pge)
		pt_put_ip(c, g, OP_FUP, fup, false);
	pt_put(c, g, end, 2);
}
static u64 psb_period(u64 config)
{
	return 2048ull << ((config >> 24) & 15);
}
static bool pt_in(struct fk_gen *g, u64 ip)
{
	u32 i;

	for (i = 0; i < g->nrange; i++)
		if (ip >= g->range[i].a && ip <= g->range[i].b)
			return true;
	return !g->nrange;
}
static void pt_enable(struct fk_cpu *c, struct fk_gen *g, struct perf_event *e, u64 ip)
{
	if (g->pge || !pt_in(g, ip))
		return;
	if (!g->seen_psb || c->buf->since_psb >= psb_period(e->attr.config))
		pt_psb(c, g, e, 0, true);
	else
		pt_resync(c, g, rdtsc());
	g->pge = true;
	pt_ip(c, g, OP_PGE, ip, false);
}
/* user -> kernel by an interrupt, a fault or a stop: FUP + TIP.PGD */
static void pt_async_off(struct fk_cpu *c, struct fk_gen *g)
{
	if (!g->pge)
		return;
	if (g->lose) {		/* lost with the rest; the overflow's packets will tell where it goes on */
		g->pge = false;
		return;
	}
	pt_ip(c, g, OP_FUP, this_cpu_read(cur_ip), false);
	pt_ip(c, g, OP_PGD, 0, true);
	g->pge = false;
}
/*
 * Of the kernel's own code, what is known without stepping it: a system call goes to its entry point, which begins
 * with an ENDBR64 where the kernel has that, and SWAPGS.  Behind those the trace pauses, as in an interrupt.
 */
static void pt_kernel_entry(struct fk_cpu *c, struct fk_gen *g, struct perf_event *e)
{
	static const u8 endbr[4] = { 0xf3, 0x0f, 0x1e, 0xfa }, swapgs[3] = { 0x0f, 0x01, 0xf8 };
	u64 ip;

	if (e->attr.exclude_kernel || g->nrange)
		return;
	rdmsrl(MSR_LSTAR, ip);
	pt_ip(c, g, OP_TIP, ip, false);
	if (!memcmp((void *)ip, endbr, sizeof(endbr))) {
		truth_put(ip);
		ip += sizeof(endbr);
	}
	if (!memcmp((void *)ip, swapgs, sizeof(swapgs))) {
		truth_put(ip);
		ip += sizeof(swapgs);
	}
	pt_ip(c, g, OP_FUP, ip, false);
}
static void pt_step(struct fk_cpu *c, struct fk_gen *g, struct perf_event *e, enum kind k, u32 len,
		    u64 old, u64 new, u64 retaddr)
{
	if (ovf_every) {
		if (g->lose) {
			if (!--g->lose && pt_in(g, new)) {
				static const u8 ovf[2] = { 2, 0xf3 };

				c->buf->ntnt = c->buf->tnt = 0;
				c->buf->rn = 0;
				c->buf->last_ip = 0;	/* addresses are not compressed against what is lost */
				pt_put(c, g, ovf, 2);
				pt_put_ip(c, g, OP_FUP, new, false);
				g->pge = true;
			}
			return;
		}
		if (n_steps % ovf_every == 0) {
			g->lose = ovf_lose;
			return;
		}
	}
	pt_enable(c, g, e, old);
	if (!g->pge) {
		pt_enable(c, g, e, new);	/* entering a filter range */
		return;
	}
	pt_mtc(c, g, rdtsc());
	if (!pt_in(g, new)) {			/* leaving one */
		pt_ip(c, g, OP_PGD, new, false);
		g->pge = false;
		return;
	}
	switch (k) {
	case K_COND:
		pt_tnt(c, g, new != old + len);
		break;
	case K_RET:
		if (!(e->attr.config & BIT(11)) && c->buf->rn && c->buf->rs[(c->buf->rn - 1) % RETSTACK] == new) {
			c->buf->rn--;
			pt_tnt(c, g, 1);
		} else {
			c->buf->rn = 0;
			pt_ip(c, g, OP_TIP, new, false);
		}
		break;
	case K_CALL:
	case K_CALL_IND:
		if (new != retaddr) {
			if (c->buf->rn == RETSTACK) {
				memmove(c->buf->rs, c->buf->rs + 1, sizeof(c->buf->rs) - sizeof(c->buf->rs[0]));
				c->buf->rn--;
			}
			c->buf->rs[c->buf->rn++] = retaddr;
		}
		if (k == K_CALL_IND)
			pt_ip(c, g, OP_TIP, new, false);
		break;
	case K_JMP_IND:
	case K_FAR:
		pt_ip(c, g, OP_TIP, new, false);
		break;
	default:
		break;
	}
	if (c->buf->since_psb >= psb_period(e->attr.config))
		pt_psb(c, g, e, new, true);
}

/* ---- BTS records ------------------------------------------------------------ */
static u64 whole_records(u64 bytes)
{
	return bytes - bytes % BTS_REC;
}
/*
 * Where records go in a buffer that is not overwritten, as intel_bts decides it when an event starts and at each
 * interrupt: on in this piece, or at the next one's begin when little is left here, and not far beyond the watermark.
 */
static int bts_place(struct fk_buf *b, struct perf_output_handle *h)
{
	u64 head = h->head & b->mask, left = b->piece[b->at].end - head;
	u64 room = left > h->size ? whole_records(h->size) : left;
	u64 most;

	if (room <= BTS_MARGIN) {
		u32 next = b->at + 1 == b->npieces ? 0 : b->at + 1;
		u64 skip = (next ? b->piece[next].begin : b->size) - head;
		u64 there = b->piece[next].end - b->piece[next].begin;

		if (h->size >= skip) {
			if (there + skip > h->size)
				there = whole_records(h->size - skip);
			if (there > room || !room) {
				for (; left; left--, head++)
					((u8 *)b->pages[head >> PAGE_SHIFT])[head & ~PAGE_MASK] = 0;
				if (perf_aux_output_skip(h, skip))
					return -ENOSPC;
				b->at = next;
				head = b->piece[next].begin;
				room = there;
			}
		}
	}
	most = BTS_MARGIN + BTS_REC + h->wakeup - h->head;
	if (room > most)
		room = whole_records(most);
	b->pos = head;
	b->end = head + room;
	b->threshold = room > BTS_MARGIN ? b->end - BTS_MARGIN : room > BTS_REC ? b->end - BTS_REC : b->end;
	return room ? 0 : -ENOSPC;
}
static void disarm(struct pt_regs *regs);
static bool any_mine(void);
/* The buffer is at its threshold: what is there is handed over, and if there is room it goes on. */
static void bts_interrupt(struct fk_cpu *c)
{
	struct perf_event *e = c->handle.event;
	struct fk_buf *b = c->buf;

	if (b->pos >= b->end)
		perf_aux_output_flag(&c->handle, PERF_AUX_FLAG_TRUNCATED);
	perf_aux_output_end(&c->handle, c->written);
	c->written = 0;
	c->stopped = false;
	b = perf_aux_output_begin(&c->handle, e);
	if (b && !bts_place(b, &c->handle))
		return;
	if (b)
		perf_aux_output_end(&c->handle, 0);
	c->active = false;	/* until it starts again */
	if (!any_mine())
		disarm(task_pt_regs(current));
}
static void bts_put(struct fk_cpu *c, u64 from, u64 to)
{
	u64 r[3] = { from, to, 0 };

	put_bytes(c, r, sizeof(r));
	if (c->buf->piece && c->buf->pos >= c->buf->threshold)
		bts_interrupt(c);
}

/* Hardware records where the kernel really returns to: behind a system call, or a signal's handler. */
static void bts_put_return(struct fk_cpu *c, u64 to)
{
	if (!this_cpu_read(bts_return))
		return;
	this_cpu_write(bts_return, false);
	if (bts_leak)
		bts_put(c, 0xffffffff81a00001ull, to);
}

/* ---- instruction classification (64-bit mode; length only where needed) ----- */
static enum kind classify(const u8 *p, int n, u32 *len)
{
	int i = 0;

	*len = 0;
	while (i < n && (p[i] == 0x66 || p[i] == 0x67 || p[i] == 0xf2 || p[i] == 0xf3 || p[i] == 0x2e ||
			 p[i] == 0x36 || p[i] == 0x3e || p[i] == 0x26 || p[i] == 0x64 || p[i] == 0x65 || p[i] == 0xf0))
		i++;
	if (i < n && (p[i] & 0xf0) == 0x40)
		i++;
	if (i + 1 >= n)
		return i < n && (p[i] == 0xc3 || p[i] == 0xcb || p[i] == 0xcf) ? (p[i] == 0xc3 ? K_RET : K_FAR) : K_OTHER;
	switch (p[i]) {
	case 0x70 ... 0x7f:
	case 0xe0 ... 0xe3:
		*len = i + 2;
		return K_COND;
	case 0x0f:
		if ((p[i + 1] & 0xf0) == 0x80) {
			*len = i + 6;
			return K_COND;
		}
		return p[i + 1] == 0x05 || p[i + 1] == 0x34 ? K_FAR : K_OTHER;
	case 0xc2:
	case 0xc3:
		return K_RET;
	case 0xca:
	case 0xcb:
	case 0xcc:
	case 0xcd:
	case 0xcf:
		return K_FAR;
	case 0xe8:
		*len = i + 5;
		return K_CALL;
	case 0xe9:
	case 0xeb:
		return K_JMP;
	case 0xff:
		switch ((p[i + 1] >> 3) & 7) {
		case 2:
			return K_CALL_IND;
		case 4:
			return K_JMP_IND;
		case 3:
		case 5:
			return K_FAR;
		}
	}
	return K_OTHER;
}

/* ---- stepping ----------------------------------------------------------------- */
static bool mine(struct fk_cpu *c)
{
	return c->active && mode == 1 && c->handle.event && c->handle.event->ctx && c->handle.event->ctx->task == current &&
	       current->mm && !c->handle.event->attr.exclude_user;
}
/* ---- the "cpu" PMU: BTS through samples, LBR through samples ------------------- */
#define HW_SLOTS 4
#define HW_BTS_MAX 2730			/* 64 KiB / 24, as the kernel's own buffer */
#define HW_BTS_THRESH (HW_BTS_MAX - HW_BTS_MAX / 16)
#define LBR_MAX 32

struct hw_ev {
	struct perf_event *e;
	bool bts;
	u64 left;
	u32 nrec;
	u64 (*rec)[2];
	u32 lbr_top, lbr_n;
	struct task_struct *last;	/* in whose time on the CPU the stack was filled */
	u64 last_turn;
	struct perf_branch_entry ring[LBR_MAX];
	struct {
		struct perf_branch_stack s;
		struct perf_branch_entry room[LBR_MAX];
	} out;
};
static DEFINE_PER_CPU(struct hw_ev *, hw_slot[HW_SLOTS]);
static struct pmu hw_pmu;

/* not exported: found by name at init */
static typeof(&perf_event_overflow) fk_overflow;
static typeof(&perf_prepare_sample) fk_prepare_sample;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
static typeof(&perf_prepare_header) fk_prepare_header;
#endif
static typeof(&perf_output_begin) fk_output_begin;
static typeof(&perf_output_sample) fk_output_sample;
static typeof(&perf_output_end) fk_output_end;

static struct hw_ev *hw_of(struct perf_event *e)
{
	return (struct hw_ev *)e->hw.event_base;
}
static bool hw_mine(struct hw_ev *h)
{
	return h && h->e->ctx && h->e->ctx->task == current && current->mm && !h->e->attr.exclude_user &&
	       !(h->e->hw.state & PERF_HES_STOPPED);
}
static bool any_mine(void)
{
	int i;

	for (i = 0; i < HW_SLOTS; i++)
		if (hw_mine(this_cpu_read(hw_slot[i])))
			return true;
	return mine(this_cpu_ptr(&pt_cpu)) || mine(this_cpu_ptr(&bts_cpu));
}
/* What intel_pmu_drain_bts_buffer() does: ONE reservation for the whole batch. */
static void hw_drain(struct hw_ev *h)
{
	struct perf_event *e = h->e;
	struct perf_sample_data data;
	struct perf_output_handle handle;
	struct perf_event_header header;
	struct pt_regs regs;
	u32 i, n = h->nrec;

	h->nrec = 0;
	if (!n)
		return;
	memset(&regs, 0, sizeof(regs));
	perf_sample_data_init(&data, 0, e->hw.last_period);
	rcu_read_lock();
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	fk_prepare_sample(&data, e, &regs);
	fk_prepare_header(&header, &data, e, &regs);
#else
	fk_prepare_sample(&header, &data, e, &regs);
#endif
	if (!fk_output_begin(&handle, &data, e, header.size * n)) {
		for (i = 0; i < n; i++) {
			data.ip = h->rec[i][0];
			data.addr = h->rec[i][1];
			fk_output_sample(&handle, &header, &data, e);
		}
		fk_output_end(&handle);
	}
	rcu_read_unlock();
}
static bool lbr_wants(u64 want, enum kind k)
{
	if (want & PERF_SAMPLE_BRANCH_ANY)
		return true;
	switch (k) {
	case K_COND:
		return want & PERF_SAMPLE_BRANCH_COND;
	case K_RET:
		return want & PERF_SAMPLE_BRANCH_ANY_RETURN;
	case K_CALL:
		return want & (PERF_SAMPLE_BRANCH_ANY_CALL | PERF_SAMPLE_BRANCH_CALL);
	case K_CALL_IND:
		return want & (PERF_SAMPLE_BRANCH_ANY_CALL | PERF_SAMPLE_BRANCH_IND_CALL);
	case K_JMP_IND:
		return want & PERF_SAMPLE_BRANCH_IND_JUMP;
	default:
		return false;
	}
}
static void hw_step(struct hw_ev *h, struct pt_regs *regs, enum kind k, bool taken, u64 old, u64 new)
{
	static const u8 type[] = { 0, PERF_BR_COND, PERF_BR_RET, PERF_BR_CALL, PERF_BR_IND_CALL, PERF_BR_UNCOND,
				   PERF_BR_IND, PERF_BR_UNKNOWN };
	struct perf_event *e = h->e;
	u32 i;

	if (k != K_OTHER || e->attr.config == PERF_COUNT_HW_CPU_CYCLES || e->attr.config == PERF_COUNT_HW_INSTRUCTIONS)
		local64_inc(&e->count);
	else
		return;
	if (h->bts) {
		if (taken) {
			h->rec[h->nrec][0] = old;
			h->rec[h->nrec][1] = new;
			if (++h->nrec >= HW_BTS_THRESH)
				hw_drain(h);
		}
		return;
	}
	/* the kernel flushes LBRs when threads with inherited events change places, too */
	if (h->last != current || h->last_turn != current->nvcsw + current->nivcsw)
		h->lbr_top = h->lbr_n = 0;
	h->last = current;
	h->last_turn = current->nvcsw + current->nivcsw;
	if (taken && has_branch_stack(e) && lbr_wants(e->attr.branch_sample_type, k)) {
		struct perf_branch_entry *b = &h->ring[h->lbr_top];

		memset(b, 0, sizeof(*b));
		b->from = old;
		b->to = new;
		b->predicted = 1;
		if (e->attr.branch_sample_type & PERF_SAMPLE_BRANCH_TYPE_SAVE)
			b->type = type[k];
		h->lbr_top = (h->lbr_top + 1) % min_t(u32, lbr_nr, LBR_MAX);
		h->lbr_n = min_t(u32, h->lbr_n + 1, min_t(u32, lbr_nr, LBR_MAX));
	}
	if (!is_sampling_event(e) || --h->left)
		return;
	h->left = e->hw.sample_period;
	{
		struct perf_sample_data data;

		perf_sample_data_init(&data, 0, e->hw.last_period);
		if (has_branch_stack(e)) {
			u32 cap = min_t(u32, lbr_nr, LBR_MAX);

			h->out.s.nr = h->lbr_n;		/* newest first */
			h->out.s.hw_idx = -1ull;
			for (i = 0; i < h->lbr_n; i++)
				h->out.s.entries[i] = h->ring[(h->lbr_top + cap - 1 - i) % cap];
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 8, 0)
			perf_sample_save_brstack(&data, e, &h->out.s, NULL);
#elif LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
			perf_sample_save_brstack(&data, e, &h->out.s);
#else
			data.br_stack = &h->out.s;
			data.sample_flags |= PERF_SAMPLE_BRANCH_STACK;
#endif
		}
		if (fk_overflow(e, &data, regs))
			e->hw.state |= PERF_HES_STOPPED;	/* throttled; the core restarts it */
	}
}
static void arm(struct pt_regs *regs)
{
	regs->flags |= X86_EFLAGS_TF;
	if (!test_thread_flag(TIF_SINGLESTEP))
		set_thread_flag(TIF_FORCED_TF);	/* hides TF from ptrace and from children */
}
static void disarm(struct pt_regs *regs)
{
	if (!test_thread_flag(TIF_SINGLESTEP) && test_and_clear_thread_flag(TIF_FORCED_TF))
		regs->flags &= ~X86_EFLAGS_TF;
}

/*
 * PTWRITE of a register, which the emulator does not know: F3 [REX] 0F AE /4.  Returns its length; 0: it is another.
 */
static u32 ptwrite_of(struct pt_regs *regs, u64 *value, bool *wide)
{
	static const u8 offset[16] = {
		offsetof(struct pt_regs, ax), offsetof(struct pt_regs, cx), offsetof(struct pt_regs, dx),
		offsetof(struct pt_regs, bx), offsetof(struct pt_regs, sp), offsetof(struct pt_regs, bp),
		offsetof(struct pt_regs, si), offsetof(struct pt_regs, di), offsetof(struct pt_regs, r8),
		offsetof(struct pt_regs, r9), offsetof(struct pt_regs, r10), offsetof(struct pt_regs, r11),
		offsetof(struct pt_regs, r12), offsetof(struct pt_regs, r13), offsetof(struct pt_regs, r14),
		offsetof(struct pt_regs, r15),
	};
	u8 p[5], rex = 0;
	u32 i = 1;

	if (copy_from_user_nofault(p, (void __user *)regs->ip, sizeof(p)) || p[0] != 0xf3)
		return 0;
	if ((p[i] & 0xf0) == 0x40)
		rex = p[i++];
	if (p[i] != 0x0f || p[i + 1] != 0xae || (p[i + 2] & 0xf8) != 0xe0)
		return 0;
	*value = *(unsigned long *)((u8 *)regs + offset[(p[i + 2] & 7) | (rex & 1) << 3]);
	*wide = rex & 8;
	return i + 3;
}
static bool any_mine(void);
/* The processor would execute it: here it ends in a fault, which the kernel's own handler never sees. */
static int on_ptwrite(struct pt_regs *regs)
{
	struct fk_cpu *pc = this_cpu_ptr(&pt_cpu);
	u64 old = regs->ip, value;
	bool wide;
	u32 len = ptwrite_of(regs, &value, &wide);

	if (!len)
		return NOTIFY_DONE;
	regs->ip += len;
	if (!any_mine())
		return NOTIFY_STOP;
	set_user_ip(regs->ip);
	n_steps++;
	truth_put(old);
	if (mine(pc)) {
		struct perf_event *e = pc->handle.event;
		struct fk_gen *g = gen_of(e);

		if (!g->paused && !g->lose)
			pt_enable(pc, g, e, old);
		if (!g->paused && !g->lose && g->pge && (e->attr.config & CFG_PTW)) {
			u8 pkt[10] = { 2, 0x12 | wide << 5 | !!(e->attr.config & CFG_FUP_ON_PTW) << 7 };

			memcpy(pkt + 2, &value, wide ? 8 : 4);
			pt_cyc(pc, g, pt_flush(pc, g));
			pt_put(pc, g, pkt, wide ? 10 : 6);
			if (e->attr.config & CFG_FUP_ON_PTW)
				pt_ip(pc, g, OP_FUP, old, false);
		}
		if (!g->paused)
			pt_step(pc, g, e, K_OTHER, len, old, regs->ip, 0);
	}
	return NOTIFY_STOP;
}
static int on_die(struct notifier_block *nb, unsigned long val, void *data)
{
	struct die_args *a = data;
	struct fk_cpu *pc = this_cpu_ptr(&pt_cpu), *bc = this_cpu_ptr(&bts_cpu);
	unsigned long *dr6;
	struct pt_regs *regs;
	bool p, b;
	u8 insn[16];
	u64 old, new, retaddr = 0;
	u32 len = 0;
	int n = 15, i;
	bool taken;
	enum kind k = K_OTHER;

	if (val == DIE_TRAP && a->trapnr == X86_TRAP_UD && user_mode(a->regs))
		return on_ptwrite(a->regs);
	if (val != DIE_DEBUG)
		return NOTIFY_DONE;
	dr6 = (unsigned long *)a->err;
	regs = a->regs;
	if (!(*dr6 & DR_STEP) || !user_mode(regs))
		return NOTIFY_DONE;
	if (!any_mine())
		return NOTIFY_DONE;
	p = mine(pc);
	b = mine(bc);
	new = regs->ip;
	old = user_ip();
	set_user_ip(new);
	n_steps++;
	truth_put(old);
	if (copy_from_user_nofault(insn, (void __user *)old, n)) {
		n = PAGE_SIZE - (old & ~PAGE_MASK);
		if (n > 15 || copy_from_user_nofault(insn, (void __user *)old, n))
			n = 0;
	}
	if (n)
		k = classify(insn, n, &len);
	if (k == K_CALL_IND || k == K_CALL)
		if (copy_from_user_nofault(&retaddr, (void __user *)regs->sp, 8))
			retaddr = 0;
	if (p) {
		struct fk_gen *g = gen_of(pc->handle.event);

		if (!g->paused)
			pt_step(pc, g, pc->handle.event, k, len, old, new, retaddr);
	}
	taken = k != K_OTHER && !(k == K_COND && new == old + len);
	if (b)
		bts_put_return(bc, old);
	if (b && taken && mine(bc))
		bts_put(bc, old, new);
	for (i = 0; i < HW_SLOTS; i++)
		if (hw_mine(this_cpu_read(hw_slot[i])))
			hw_step(this_cpu_read(hw_slot[i]), regs, k, taken, old, new);
	if (any_mine())
		regs->flags |= X86_EFLAGS_TF;
	if (test_thread_flag(TIF_SINGLESTEP))
		return NOTIFY_DONE;		/* the debugger wants this step too */
	/*
	 * hw_breakpoint_handler() ran before (priority INT_MAX).  What it left in
	 * DR_TRAPn next to DR_STEP are execute breakpoints on the NEXT instruction,
	 * which fault again by themselves on the way back.  Trap bits that ptrace
	 * or perf asked to be signalled are in virtual_dr6.
	 */
	*dr6 &= ~(DR_STEP | DR_TRAP_BITS);
	current->thread.virtual_dr6 &= ~DR_STEP;
	return current->thread.virtual_dr6 & DR_TRAP_BITS ? NOTIFY_DONE : NOTIFY_STOP;
}
static struct notifier_block die_nb = { .notifier_call = on_die, .priority = 100 };

static void on_sys_enter(void *d, struct pt_regs *regs, long id)
{
	struct fk_cpu *pc;
	unsigned long fl;

	local_irq_save(fl);
	pc = this_cpu_ptr(&pt_cpu);
	if (any_mine()) {
		truth_put(regs->ip - 2);
		set_user_ip(regs->ip);
	}
	if (mine(this_cpu_ptr(&bts_cpu)))
		bts_put_return(this_cpu_ptr(&bts_cpu), regs->ip - 2);
	if (mine(pc)) {
		struct fk_gen *g = gen_of(pc->handle.event);

		if (!g->paused && !g->lose) {
			pt_enable(pc, g, pc->handle.event, regs->ip - 2);
			if (g->pge) {
				pt_kernel_entry(pc, g, pc->handle.event);
				pt_ip(pc, g, OP_PGD, 0, true);
				g->pge = false;
			}
		}
	}
	local_irq_restore(fl);
}
static void on_sys_exit(void *d, struct pt_regs *regs, long ret)
{
	struct fk_cpu *bc;
	unsigned long fl;

	local_irq_save(fl);
	bc = this_cpu_ptr(&bts_cpu);
	if (any_mine()) {
		set_user_ip(regs->ip);
		arm(regs);
	}
	if (mine(bc))
		this_cpu_write(bts_return, true);
	local_irq_restore(fl);
}
/* Signal delivery changes ip and clears TF: keep TF out of the signal frame, then re-arm. */
static int on_signal_entry(struct kretprobe_instance *ri, struct pt_regs *r)
{
	struct pt_regs *u = task_pt_regs(current);
	unsigned long fl;

	local_irq_save(fl);
	if (any_mine())
		disarm(u);
	local_irq_restore(fl);
	return 0;
}
static int on_signal_ret(struct kretprobe_instance *ri, struct pt_regs *r)
{
	struct pt_regs *u = task_pt_regs(current);
	struct fk_cpu *pc;
	unsigned long fl;

	local_irq_save(fl);
	pc = this_cpu_ptr(&pt_cpu);
	if (mine(pc)) {
		struct fk_gen *g = gen_of(pc->handle.event);

		if (user_ip() != u->ip && !g->paused)
			pt_async_off(pc, g);
	}
	if (any_mine()) {
		if (user_ip() != u->ip)
			this_cpu_write(bts_return, true);
		set_user_ip(u->ip);
		arm(u);
	}
	local_irq_restore(fl);
	return 0;
}
static struct kretprobe sig_probe = {
	.kp.symbol_name = "arch_do_signal_or_restart",
	.entry_handler = on_signal_entry,
	.handler = on_signal_ret,
	.maxactive = 256,
};

/* ---- pmu callbacks --------------------------------------------------------------- */
/* The core says with each allocation's first page how large it is.  No record lies across two of them. */
static bool find_pieces(struct fk_buf *b, int nr)
{
	int pg, n;

	b->piece = kcalloc(nr, sizeof(*b->piece), GFP_KERNEL);
	for (pg = 0; b->piece && pg < nr; pg += n) {
		struct page *page = virt_to_page(b->pages[pg]);
		struct fk_piece *p = &b->piece[b->npieces++];

		n = PagePrivate(page) ? 1 << page_private(page) : 1;
		p->begin = whole_records(((u64)pg << PAGE_SHIFT) + BTS_REC - 1);
		p->end = whole_records((u64)(pg + n) << PAGE_SHIFT);
	}
	return b->piece;
}
static void *setup_aux(struct perf_event *e, void **pages, int nr, bool overwrite)
{
	struct fk_buf *b = kzalloc(sizeof(*b), GFP_KERNEL);

	if (!b)
		return NULL;
	b->pages = pages;
	b->snapshot = overwrite;
	b->size = (u64)nr << PAGE_SHIFT;
	b->mask = b->size - 1;
	b->cap = b->size;
	if (e->pmu == &bts_pmu)
		b->cap -= b->size % BTS_REC;
	if (e->pmu == &bts_pmu && !overwrite && !find_pieces(b, nr)) {
		kfree(b);
		return NULL;
	}
	return b;
}
static void free_aux(void *p)
{
	kfree(((struct fk_buf *)p)->piece);
	kfree(p);
}

static void play(struct fk_cpu *c, struct fk_gen *g, struct blob *bl)
{
	unsigned long n = play_chunk;

	while (n && bl->len) {
		size_t k;

		if (g->play_off >= bl->len) {
			if (!play_loop)
				break;
			g->play_off = 0;
		}
		k = min_t(size_t, n, bl->len - g->play_off);
		k = min_t(size_t, k, 256);
		put_bytes(c, bl->data + g->play_off, k);
		g->play_off += k;
		n -= k;
		if (c->stopped)
			break;
	}
}

static void do_start(struct perf_event *e, struct fk_cpu *c, bool bts)
{
	struct fk_gen *g = gen_of(e);
	struct fk_buf *b;

	b = perf_aux_output_begin(&c->handle, e);
	if (!b) {
		e->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
		return;
	}
	c->buf = b;
	c->written = 0;
	c->limit = c->handle.size;
	c->stopped = false;
	if (b->piece && bts_place(b, &c->handle)) {
		perf_aux_output_end(&c->handle, 0);
		e->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
		return;
	}
	if (!bts)
		b->pos = c->handle.head & b->mask;
	if (e->pmu->nr_addr_filters)
		perf_event_addr_filters_sync(e);
	e->attach_state |= PERF_ATTACH_ITRACE;	/* perf_event_itrace_started() */
	e->hw.state = 0;
	c->active = true;
	n_starts++;
	if (mine(c)) {
		struct pt_regs *regs = task_pt_regs(current);

		set_user_ip(regs->ip);
		if (bts)
			this_cpu_write(bts_return, true);
		g->pge = false;
		arm(regs);
	}
}
static void do_stop(struct perf_event *e, struct fk_cpu *c, bool bts)
{
	struct fk_gen *g = gen_of(e);
	struct fk_buf *b = c->buf;

	e->hw.state |= PERF_HES_STOPPED;
	if (!c->active || c->handle.event != e)
		return;
	if (mode == 0)
		play(c, g, bts ? &play_bts : &play_pt);
	else if (!bts && mine(c) && !g->paused)
		pt_async_off(c, g);
	c->active = false;
	if (!any_mine())
		disarm(task_pt_regs(current));
	if (c->stopped || (b->piece && b->pos >= b->end)) {
		perf_aux_output_flag(&c->handle, PERF_AUX_FLAG_TRUNCATED);
		g->seen_psb = g->pge = false;	/* nothing refers to what was not written */
		b->ntnt = b->tnt = b->rn = 0;
	}
	if (inject_count && inject_flags) {
		inject_count--;
		perf_aux_output_flag(&c->handle, inject_flags & ~PERF_AUX_FLAG_OVERWRITE);
	}
	if (b->snapshot) {
		/* both real drivers: head = offset in the buffer, size = whole buffer */
		c->handle.head = b->pos;
		perf_aux_output_end(&c->handle, b->size);
	} else {
		perf_aux_output_end(&c->handle, c->written);
	}
	e->hw.state |= PERF_HES_UPTODATE;
}

static void pt_start(struct perf_event *e, int flags)
{
#ifdef PERF_EF_RESUME
	if (flags & PERF_EF_RESUME) {
		gen_of(e)->paused = false;
		return;
	}
#endif
	do_start(e, this_cpu_ptr(&pt_cpu), false);
}
static void pt_stop(struct perf_event *e, int flags)
{
#ifdef PERF_EF_PAUSE
	if (flags & PERF_EF_PAUSE) {
		struct fk_cpu *c = this_cpu_ptr(&pt_cpu);

		if (mine(c) && c->handle.event == e)
			pt_async_off(c, gen_of(e));
		gen_of(e)->paused = true;
		return;
	}
#endif
	do_stop(e, this_cpu_ptr(&pt_cpu), false);
}
static void bts_start(struct perf_event *e, int flags)
{
	do_start(e, this_cpu_ptr(&bts_cpu), true);
}
static void bts_stop(struct perf_event *e, int flags)
{
	do_stop(e, this_cpu_ptr(&bts_cpu), true);
}
static int add_common(struct perf_event *e, int flags, struct fk_cpu *c)
{
	if (c->active)
		return -EBUSY;
	e->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
	if (flags & PERF_EF_START) {
		e->pmu->start(e, 0);
		if (e->hw.state & PERF_HES_STOPPED)
			return -EINVAL;
	}
	return 0;
}
static int pt_add(struct perf_event *e, int flags)
{
	return add_common(e, flags, this_cpu_ptr(&pt_cpu));
}
static int bts_add(struct perf_event *e, int flags)
{
	return add_common(e, flags, this_cpu_ptr(&bts_cpu));
}
static void fk_del(struct perf_event *e, int flags)
{
	e->pmu->stop(e, PERF_EF_UPDATE);
}
static void fk_read(struct perf_event *e)
{
}
static void fk_destroy(struct perf_event *e)
{
	kfree(gen_of(e));
	e->hw.event_base = 0;
}
static int init_common(struct perf_event *e)
{
	struct fk_gen *g;

	if (start_errno)
		return -(int)start_errno;
	g = kzalloc(sizeof(*g), GFP_KERNEL);
	if (!g)
		return -ENOMEM;
#ifdef PERF_EF_PAUSE
	g->paused = e->attr.aux_start_paused;
#endif
	e->hw.event_base = (unsigned long)g;
	e->destroy = fk_destroy;
	return 0;
}
/* bits 0 pt, 1 cyc, 4 pwr_evt, 5 fup_on_ptw, 9 mtc, 10 tsc, 11 noretcomp, 12 ptw, 13 branch, 14-17, 19-22, 24-27 */
#define CFG_OK (BIT(0) | CFG_CYC | CFG_FUP_ON_PTW | CFG_MTC | CFG_TSC | BIT(11) | CFG_PTW | BIT(13) | (0xfull << 14) | \
		(0xfull << 19) | (0xfull << 24))
static int pt_init(struct perf_event *e)
{
	if (e->attr.type != pt_pmu.type)
		return -ENOENT;
	if (e->attr.config & ~CFG_OK)
		return -EINVAL;		/* what the caps below do not offer */
	if (((e->attr.config >> 24) & 15) > 5)
		return -EINVAL;
	if (!(e->attr.config & BIT(0)) && (e->attr.config & BIT(13)))
		return -EINVAL;		/* branch without pt: as the real driver */
	if ((e->attr.config & CFG_MTC) && !(MTC_PERIODS >> ((e->attr.config >> 14) & 15) & 1))
		return -EINVAL;
	if (!(CYC_THRESHOLDS >> ((e->attr.config >> 19) & 15) & 1))
		return -EINVAL;
	return init_common(e);
}
static int bts_init(struct perf_event *e)
{
	if (e->attr.type != bts_pmu.type)
		return -ENOENT;
	/*
	 * The real driver asks perf_allow_kernel() even with exclude_kernel.  The sysctl
	 * behind it is not exported: here users are refused whatever it says.
	 */
	if (!perfmon_capable())
		return -EACCES;
	return init_common(e);
}
static int pt_filters_validate(struct list_head *filters)
{
	struct perf_addr_filter *f;
	int n = 0;

	list_for_each_entry(f, filters, entry) {
		if (!f->size || f->action == PERF_ADDR_FILTER_ACTION_START)
			return -EOPNOTSUPP;
		if (++n > 2)
			return -EOPNOTSUPP;
	}
	return 0;
}
static void pt_filters_sync(struct perf_event *e)
{
	struct perf_addr_filters_head *h = perf_event_addr_filters(e);
	struct perf_addr_filter_range *fr = e->addr_filter_ranges;
	struct fk_gen *g = gen_of(e);
	struct perf_addr_filter *f;
	u32 n = 0;

	list_for_each_entry(f, &h->list, entry) {
		if (n >= MAX_FILTERS)
			break;
		g->range[n].a = fr[n].start;
		g->range[n].b = fr[n].start ? fr[n].start + fr[n].size - 1 : 0;
		n++;
	}
	g->nrange = n;
}

static void hw_start(struct perf_event *e, int flags)
{
	e->hw.state = 0;
	if (hw_mine(hw_of(e))) {
		set_user_ip(task_pt_regs(current)->ip);
		arm(task_pt_regs(current));
	}
}
static void hw_stop(struct perf_event *e, int flags)
{
	if (!(e->hw.state & PERF_HES_STOPPED) && hw_of(e)->bts)
		hw_drain(hw_of(e));
	e->hw.state |= PERF_HES_STOPPED;
	if (!any_mine())
		disarm(task_pt_regs(current));
}
static int hw_add(struct perf_event *e, int flags)
{
	int i;

	for (i = 0; i < HW_SLOTS; i++)
		if (!this_cpu_read(hw_slot[i]))
			break;
	if (i == HW_SLOTS)
		return -EAGAIN;
	hw_of(e)->lbr_n = hw_of(e)->lbr_top = 0;	/* the kernel flushes LBRs between tasks */
	e->hw.state = PERF_HES_STOPPED | PERF_HES_UPTODATE;
	this_cpu_write(hw_slot[i], hw_of(e));
	if (flags & PERF_EF_START)
		hw_start(e, 0);
	return 0;
}
static void hw_del(struct perf_event *e, int flags)
{
	int i;

	hw_stop(e, PERF_EF_UPDATE);
	for (i = 0; i < HW_SLOTS; i++)
		if (this_cpu_read(hw_slot[i]) == hw_of(e))
			this_cpu_write(hw_slot[i], NULL);
}
static void hw_destroy(struct perf_event *e)
{
	vfree(hw_of(e)->rec);
	kfree(hw_of(e));
	e->hw.event_base = 0;
}
static int hw_init(struct perf_event *e)
{
	struct hw_ev *h;

	if (e->attr.type != PERF_TYPE_HARDWARE)
		return -ENOENT;
	if (e->attr.config > PERF_COUNT_HW_BRANCH_MISSES)
		return -EINVAL;
	if (start_errno)
		return -(int)start_errno;
	h = kzalloc(sizeof(*h), GFP_KERNEL);
	if (!h)
		return -ENOMEM;
	h->e = e;
	h->left = e->hw.sample_period ?: 1;
	h->bts = e->attr.config == PERF_COUNT_HW_BRANCH_INSTRUCTIONS && !e->attr.freq && e->attr.sample_period == 1 &&
		 !has_branch_stack(e);
	e->hw.event_base = (unsigned long)h;
	e->destroy = hw_destroy;
	if (h->bts) {
		int err = !e->attr.exclude_kernel || e->attr.precise_ip ? -EOPNOTSUPP : 0;

		h->rec = err ? NULL : vzalloc(HW_BTS_MAX * sizeof(h->rec[0]));
		if (!h->rec) {
			hw_destroy(e);
			e->destroy = NULL;
			return err ?: -ENOMEM;
		}
	}
	return 0;
}

/* ---- sysfs ------------------------------------------------------------------------- */
PMU_FORMAT_ATTR(pt, "config:0");
PMU_FORMAT_ATTR(cyc, "config:1");
PMU_FORMAT_ATTR(pwr_evt, "config:4");
PMU_FORMAT_ATTR(fup_on_ptw, "config:5");
PMU_FORMAT_ATTR(mtc, "config:9");
PMU_FORMAT_ATTR(tsc, "config:10");
PMU_FORMAT_ATTR(noretcomp, "config:11");
PMU_FORMAT_ATTR(ptw, "config:12");
PMU_FORMAT_ATTR(branch, "config:13");
PMU_FORMAT_ATTR(mtc_period, "config:14-17");
PMU_FORMAT_ATTR(cyc_thresh, "config:19-22");
PMU_FORMAT_ATTR(psb_period, "config:24-27");
static struct attribute *fmt_attrs[] = {
	&format_attr_pt.attr, &format_attr_cyc.attr, &format_attr_pwr_evt.attr, &format_attr_fup_on_ptw.attr,
	&format_attr_mtc.attr, &format_attr_tsc.attr, &format_attr_noretcomp.attr, &format_attr_ptw.attr,
	&format_attr_branch.attr, &format_attr_mtc_period.attr, &format_attr_cyc_thresh.attr,
	&format_attr_psb_period.attr, NULL
};
static const struct attribute_group fmt_group = { .name = "format", .attrs = fmt_attrs };

static ssize_t str_show(struct device *d, struct device_attribute *a, char *page)
{
	return sprintf(page, "%s\n", (const char *)container_of(a, struct dev_ext_attribute, attr)->var);
}
#define STR_ATTR(_n, _v) \
	static struct dev_ext_attribute str_##_n = { .attr = __ATTR(_n, 0444, str_show, NULL), .var = (void *)(_v) }
STR_ATTR(max_subleaf, "1");
STR_ATTR(cr3_filtering, "1");
STR_ATTR(psb_cyc, "1");
STR_ATTR(ip_filtering, "1");
STR_ATTR(mtc, "1");
STR_ATTR(ptwrite, "1");
STR_ATTR(power_event_trace, "0");
STR_ATTR(event_trace, "0");
STR_ATTR(tnt_disable, "0");
STR_ATTR(topa_output, "1");
STR_ATTR(topa_multiple_entries, "1");
STR_ATTR(single_range_output, "1");
STR_ATTR(output_subsys, "0");
STR_ATTR(payloads_lip, "0");
STR_ATTR(num_address_ranges, "2");
STR_ATTR(mtc_periods, __stringify(MTC_PERIODS) + 2);
STR_ATTR(cycle_thresholds, __stringify(CYC_THRESHOLDS) + 2);
STR_ATTR(psb_periods, "3f");
STR_ATTR(max_nonturbo_ratio, "24");
STR_ATTR(tsc_art_ratio, __stringify(TSC_PER_ART) ":1");
#define A(_n) &str_##_n.attr.attr
static struct attribute *cap_attrs[] = {
	A(max_subleaf), A(cr3_filtering), A(psb_cyc), A(ip_filtering), A(mtc), A(ptwrite), A(power_event_trace),
	A(event_trace), A(tnt_disable), A(topa_output), A(topa_multiple_entries), A(single_range_output),
	A(output_subsys), A(payloads_lip), A(num_address_ranges), A(mtc_periods), A(cycle_thresholds),
	A(psb_periods), NULL
};
static const struct attribute_group cap_group = { .name = "caps", .attrs = cap_attrs };
static struct attribute *timing_attrs[] = { A(max_nonturbo_ratio), A(tsc_art_ratio), NULL };
static const struct attribute_group timing_group = { .attrs = timing_attrs };
static const struct attribute_group *pt_groups[] = { &cap_group, &fmt_group, &timing_group, NULL };

static struct pmu pt_pmu = {
	.module = THIS_MODULE,
	.capabilities = PERF_PMU_CAP_EXCLUSIVE | PERF_PMU_CAP_ITRACE
#ifdef PERF_PMU_CAP_AUX_PAUSE
			| PERF_PMU_CAP_AUX_PAUSE
#endif
	,
	.attr_groups = pt_groups,
	.task_ctx_nr = perf_sw_context,
	.event_init = pt_init,
	.add = pt_add,
	.del = fk_del,
	.start = pt_start,
	.stop = pt_stop,
	.read = fk_read,
	.setup_aux = setup_aux,
	.free_aux = free_aux,
	.addr_filters_sync = pt_filters_sync,
	.addr_filters_validate = pt_filters_validate,
	.nr_addr_filters = 2,
};
static struct pmu bts_pmu = {
	.module = THIS_MODULE,
	.capabilities = PERF_PMU_CAP_AUX_NO_SG | PERF_PMU_CAP_ITRACE | PERF_PMU_CAP_EXCLUSIVE,
	.task_ctx_nr = perf_sw_context,
	.event_init = bts_init,
	.add = bts_add,
	.del = fk_del,
	.start = bts_start,
	.stop = bts_stop,
	.read = fk_read,
	.setup_aux = setup_aux,
	.free_aux = free_aux,
};

static ssize_t branches_show(struct device *d, struct device_attribute *a, char *page)
{
	return sprintf(page, "%u\n", lbr_nr);
}
static struct device_attribute dev_attr_branches = __ATTR_RO(branches);
static struct attribute *hw_cap_attrs[] = { &dev_attr_branches.attr, NULL };
static const struct attribute_group hw_cap_group = { .name = "caps", .attrs = hw_cap_attrs };
static const struct attribute_group *hw_groups[] = { &hw_cap_group, NULL };
static struct pmu hw_pmu = {
	.module = THIS_MODULE,
	.attr_groups = hw_groups,
	.task_ctx_nr = perf_hw_context,
	.event_init = hw_init,
	.add = hw_add,
	.del = hw_del,
	.start = hw_start,
	.stop = hw_stop,
	.read = fk_read,
};

/* ---- init --------------------------------------------------------------------------- */
static struct tracepoint *tp_enter, *tp_exit, *tp_switch;
static void find_tp(struct tracepoint *tp, void *unused)
{
	if (!strcmp(tp->name, "sys_enter"))
		tp_enter = tp;
	else if (!strcmp(tp->name, "sys_exit"))
		tp_exit = tp;
	else if (!strcmp(tp->name, "sched_switch"))
		tp_switch = tp;
}
static int blob_init(struct blob *b, const char *name)
{
	b->cap = 4 << 20;
	b->data = vzalloc(b->cap);
	if (!b->data)
		return -ENOMEM;
	debugfs_create_file(name, 0200, dbg, b, &blob_ops);
	return 0;
}
/* A kprobe is the documented way to turn a symbol name into an address. */
static void *sym(const char *name)
{
	struct kprobe kp = { .symbol_name = name };
	void *p;

	if (register_kprobe(&kp))
		return NULL;
	p = kp.addr;
	unregister_kprobe(&kp);
	return p;
}
static bool hw_syms(void)
{
	fk_overflow = sym("perf_event_overflow");
	fk_prepare_sample = sym("perf_prepare_sample");
	fk_output_begin = sym("perf_output_begin");
	fk_output_sample = sym("perf_output_sample");
	fk_output_end = sym("perf_output_end");
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 3, 0)
	fk_prepare_header = sym("perf_prepare_header");
	if (!fk_prepare_header)
		return false;
#endif
	return fk_overflow && fk_prepare_sample && fk_output_begin && fk_output_sample && fk_output_end;
}
static bool hw_reg, pt_reg, bts_reg, die_reg, sig_reg, ent_reg, ext_reg, switch_reg;
static void undo(void)
{
	if (hw_reg)
		perf_pmu_unregister(&hw_pmu);
	if (pt_reg)
		perf_pmu_unregister(&pt_pmu);
	if (bts_reg)
		perf_pmu_unregister(&bts_pmu);
	if (ext_reg)
		tracepoint_probe_unregister(tp_exit, on_sys_exit, NULL);
	if (ent_reg)
		tracepoint_probe_unregister(tp_enter, on_sys_enter, NULL);
	if (switch_reg)
		tracepoint_probe_unregister(tp_switch, on_switch, NULL);
	if (ent_reg || ext_reg || switch_reg)
		tracepoint_synchronize_unregister();
	if (sig_reg)
		unregister_kretprobe(&sig_probe);
	if (die_reg)
		unregister_die_notifier(&die_nb);
	debugfs_remove_recursive(dbg);
	vfree(truth);
	vfree(play_pt.data);
	vfree(play_bts.data);
}
static int __init fk_init(void)
{
	int err;

	truth = vzalloc(truth_bytes);
	dbg = debugfs_create_dir("fakepmu", NULL);
	err = blob_init(&play_pt, "play_pt");
	if (!err)
		err = blob_init(&play_bts, "play_bts");
	if (err)
		goto fail;
	debugfs_create_file("truth", 0600, dbg, NULL, &truth_ops);
	err = -ENOENT;
	for_each_kernel_tracepoint(find_tp, NULL);
	if (!tp_enter || !tp_exit || !tp_switch)
		goto fail;
	err = register_die_notifier(&die_nb);
	if (err)
		goto fail;
	die_reg = true;
	err = register_kretprobe(&sig_probe);
	if (err)
		goto fail;
	sig_reg = true;
	err = tracepoint_probe_register(tp_enter, on_sys_enter, NULL);
	if (err)
		goto fail;
	ent_reg = true;
	err = tracepoint_probe_register(tp_exit, on_sys_exit, NULL);
	if (err)
		goto fail;
	ext_reg = true;
	err = tracepoint_probe_register(tp_switch, on_switch, NULL);
	if (err)
		goto fail;
	switch_reg = true;
	err = perf_pmu_register(&pt_pmu, "intel_pt", -1);
	if (err)
		goto fail;
	pt_reg = true;
	err = perf_pmu_register(&bts_pmu, "intel_bts", -1);
	if (err)
		goto fail;
	bts_reg = true;
	/* type 4 is taken when the kernel drives a real core PMU: then leave it alone */
	if (cpu_pmu_on && hw_syms() && !perf_pmu_register(&hw_pmu, "cpu", PERF_TYPE_RAW))
		hw_reg = true;
	pr_info("cpu PMU %s\n", hw_reg ? "registered" : "not registered");
	pr_info("intel_pt type %d, intel_bts type %d, mode %d\n", pt_pmu.type, bts_pmu.type, mode);
	return 0;
fail:
	undo();
	return err;
}
static void __exit fk_exit(void)
{
	undo();
}
module_init(fk_init);
module_exit(fk_exit);
MODULE_LICENSE("Dual MIT/GPL");
MODULE_DESCRIPTION("Stand-in intel_pt and intel_bts PMUs for tests without the hardware");
