"""The C programs that `bench_native` compares with: the same data structures, written by hand.

`keyed` is an array of entries by small whole key. `Table` is the map of texts: an index of words, each 16 bits of hash and
the address of an entry, at most a third full, probed linearly; entries are linked in order of insertion and never move.
The window is a ring of rows that know their group; what changes at an instant is written to columns, as River does. Of
a join what goes is met first, and pairs that both come and go at an instant are taken away by a table, as in `net`.
"""

LOOPS = r"""
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
typedef int64_t i64;
typedef uint64_t u64;
typedef __int128 i128;
typedef struct entry { struct entry *next, *prev; i64 k, n, s; } E;
i64 filter_map(i64 n, i64 *k, double *p, i64 *v, i64 *ok, double *ov) {
  i64 m = 0;
  for (i64 i = 0; i < n; i++) if (p[i] > 50.0) { ok[m] = k[i]; ov[m++] = p[i] * (double)v[i]; }
  return m;
}
static E **dir, *head, *tail; static i64 cap;
void setup(i64 c) { dir = calloc(c, sizeof(E *)); cap = c; head = tail = 0; }
i64 keyed(i64 n, i64 *k, i64 *v) {
  for (i64 i = 0; i < n; i++) {
    if ((u64)k[i] >= (u64)cap) abort();
    E *e = dir[k[i]];
    if (!e) {
      e = calloc(1, sizeof(E)); e->k = k[i]; e->prev = tail;
      if (tail) tail->next = e; else head = e;
      tail = e; dir[k[i]] = e;
    }
    e->n++; e->s += v[i];
  }
  return 0;
}
"""

TABLE = r"""
typedef struct { i64 a, b; } View;  /* length and first bytes, the other bytes: texts of at most 12 */
typedef struct group { struct group *next, *prev; View key; i64 n; i64 seen; i128 s; double was; } Group;
typedef struct { u64 *words; u64 mask; i64 count; Group *first, *last, *spare; } Table;
static inline u64 hash(View k) {
  unsigned __int128 p = (unsigned __int128)(u64)(k.a ^ -7046029254386353131ll) * (u64)(k.b ^ -3372029247567499371ll);
  return (u64)p ^ (u64)(p >> 64) ^ k.a; }
static inline Group *at(u64 w) { return (Group *)(w & 0xffffffffffffull); }
static void table_open(Table *t) { memset(t, 0, sizeof *t); t->mask = 63; t->words = calloc(64, 8); }
static inline u64 *place(Table *t, View k, u64 h) {
  for (u64 i = h & t->mask;; i = (i + 1) & t->mask) {
    u64 w = t->words[i];
    if (!w) return t->words + i;
    if ((w ^ h) >> 48 == 0 && at(w)->key.a == k.a && at(w)->key.b == k.b) return t->words + i; } }
static void table_grow(Table *t) {
  u64 *old = t->words, n = t->mask + 1; t->mask = n * 2 - 1; t->words = calloc(n * 2, 8);
  for (Group *g = t->first; g; g = g->next) { u64 h = hash(g->key); *place(t, g->key, h) = (h >> 48 << 48) | (u64)g; }
  free(old); }
static inline Group *group_of(Table *t, View k) {
  u64 h = hash(k), *w = place(t, k, h); if (*w) return at(*w);
  if ((u64)++t->count * 3 > t->mask) { table_grow(t); w = place(t, k, h); }
  Group *g = t->spare; if (g) t->spare = g->next; else g = malloc(sizeof *g);
  memset(g, 0, sizeof *g); g->key = k; g->seen = -1; g->prev = t->last;
  if (t->last) t->last->next = g; else t->first = g;
  t->last = g; *w = (h >> 48 << 48) | (u64)g; return g; }
static inline void group_drop(Table *t, Group *g) {
  u64 i = place(t, g->key, hash(g->key)) - t->words;
  for (u64 j = (i + 1) & t->mask; t->words[j]; j = (j + 1) & t->mask)
    if (((j - hash(at(t->words[j])->key)) & t->mask) >= ((j - i) & t->mask)) { t->words[i] = t->words[j]; i = j; }
  t->words[i] = 0; t->count--;
  if (g->prev) g->prev->next = g->next; else t->first = g->next;
  if (g->next) g->next->prev = g->prev; else t->last = g->prev;
  g->next = t->spare; t->spare = g; }

static Table sums;
void keyed_text_open(void) { table_open(&sums); }
i64 keyed_text(i64 n, View *k, i64 *v) {
  for (i64 i = 0; i < n; i++) { Group *g = group_of(&sums, k[i]); g->n++; g->s += v[i]; }
  return sums.count; }
"""

AVERAGES = r"""
#define RANGE 300
typedef struct { i64 t; Group *g; i64 x; } Kept;
typedef struct { i64 *tau, *ins, *del; View *ins_key; double *ins_mean; View *del_key; double *del_mean;
  i64 deltas, comes, goes; } Out;
static Table groups; static Kept *ring; static u64 ring_mask, first, last; static Group **touched; static i64 many;
static Out *out;
void averages_open(i64 room) {
  table_open(&groups); ring = malloc(room * sizeof *ring); ring_mask = room - 1; first = last = 0;
  touched = malloc(room * sizeof *touched); many = 0; }
static inline double mean(Group *g) { return (double)g->s / (double)g->n; }
static inline void touch(Group *g, i64 now) {
  if (g->seen != now) { g->seen = now; if (g->n) g->was = mean(g); touched[many++] = g; g->was = g->n ? g->was : 0.0 / 0.0; } }
static void send(i64 now) {
  Out *o = out; i64 ins = o->comes, del = o->goes;
  for (i64 i = 0; i < many; i++) {
    Group *g = touched[i]; int was = g->was == g->was, is = g->n > 0; double m = is ? mean(g) : 0;
    if (!(was && is && m == g->was)) {
      if (was) { o->del_key[o->goes] = g->key; o->del_mean[o->goes++] = g->was; }
      if (is) { o->ins_key[o->comes] = g->key; o->ins_mean[o->comes++] = m; } }
    if (!is) group_drop(&groups, g); }
  many = 0;
  if (o->comes > ins || o->goes > del) { o->tau[o->deltas++] = now; o->ins[o->deltas] = o->comes; o->del[o->deltas] = o->goes; } }
static void expire(i64 now) {
  while (first != last && ring[first & ring_mask].t + RANGE + 1 == now) {
    Kept *k = ring + (first++ & ring_mask); touch(k->g, now); k->g->n--; k->g->s -= k->x; } }
void averages(i64 n, i64 *t, View *k, i64 *x, Out *o) {
  out = o; o->deltas = o->comes = o->goes = 0; o->ins[0] = o->del[0] = 0;
  for (i64 i = 0; i < n;) {
    i64 now = t[i];
    while (first != last && ring[first & ring_mask].t + RANGE + 1 < now) {
      i64 end = ring[first & ring_mask].t + RANGE + 1; expire(end); send(end); }
    for (; i < n && t[i] == now; i++) {
      Group *g = group_of(&groups, k[i]); touch(g, now); g->n++; g->s += x[i];
      ring[last++ & ring_mask] = (Kept){now, g, x[i]}; }
    expire(now); send(now); } }
"""

JOIN = r"""
#define SPAN 10
typedef struct row { struct row *next, *prev; i64 x; } Row;
typedef struct { Row *first, *last; } Bag;
typedef struct { i64 t, k; Row *row; } Held;
typedef struct { Bag *bags; Held *ring; u64 mask, first, last; } Side;
typedef struct { i64 *tau, *ins, *del, *ins_x, *ins_y, *del_x, *del_y; i64 deltas, comes, goes; } Pairs;
static Side side[2]; static Row *spare_rows; static Pairs *pairs;
void join_open(i64 keys, i64 room) {
  for (int i = 0; i < 2; i++) side[i] = (Side){calloc(keys, sizeof(Bag)), malloc(room * sizeof(Held)), room - 1, 0, 0}; }
#define MEET(s, xs, value, at, a, b) \
  for (Row *r = side[!(s)].bags[xs].first; r; r = r->next) { pairs->a[pairs->at] = (s) ? r->x : (value); \
    pairs->b[pairs->at++] = (s) ? (value) : r->x; }
static inline void come(int s, i64 t, i64 k, i64 x) {
  Row *r = spare_rows; if (r) spare_rows = r->next; else r = malloc(sizeof *r);
  Bag *b = side[s].bags + k; *r = (Row){0, b->last, x};
  if (b->last) b->last->next = r; else b->first = r;
  b->last = r; side[s].ring[side[s].last++ & side[s].mask] = (Held){t, k, r};
  MEET(s, k, x, comes, ins_x, ins_y) }
static inline void go(int s, Held *h) {
  Row *r = h->row; Bag *b = side[s].bags + h->k; i64 x = r->x;
  if (r->prev) r->prev->next = r->next; else b->first = r->next;
  if (r->next) r->next->prev = r->prev; else b->last = r->prev;
  r->next = spare_rows; spare_rows = r;
  MEET(s, h->k, x, goes, del_x, del_y) }
static u64 pair_hash(i64 x, i64 y) {
  u64 h = ((u64)x * 0x9e3779b97f4a7c15ull ^ (u64)y) * 0xff51afd7ed558ccdull; return h ^ h >> 32; }
static i64 *heads, *following, spare; static char *met;
static void net(i64 c, i64 d) {  /* takes pairs that are equal away from what comes and goes at an instant */
  Pairs *p = pairs; i64 n = p->goes - d, size = 16;
  if (!n || p->comes == c) return;
  while (size < 2 * n) size *= 2;
  if (size > spare) {
    heads = realloc(heads, size * sizeof *heads); following = realloc(following, size * sizeof *following);
    met = realloc(met, size); spare = size; }
  memset(heads, 0, size * sizeof *heads); memset(met, 0, n);
  for (i64 j = n - 1; j >= 0; j--) {
    i64 *head = heads + (pair_hash(p->del_x[d + j], p->del_y[d + j]) & (size - 1)); following[j] = *head; *head = j + 1; }
  i64 to = c;
  for (i64 i = c; i < p->comes; i++) {
    i64 x = p->ins_x[i], y = p->ins_y[i], *link = heads + (pair_hash(x, y) & (size - 1));
    while (*link && (p->del_x[d + *link - 1] != x || p->del_y[d + *link - 1] != y)) link = following + *link - 1;
    if (*link) { met[*link - 1] = 1; *link = following[*link - 1]; }
    else { p->ins_x[to] = x; p->ins_y[to++] = y; } }
  if (to == p->comes) return;
  p->comes = to; to = d;
  for (i64 j = 0; j < n; j++) if (!met[j]) { p->del_x[to] = p->del_x[d + j]; p->del_y[to++] = p->del_y[d + j]; }
  p->goes = to; }
static i64 due(int s) { Side *o = side + s; return o->first == o->last ? INT64_MAX : o->ring[o->first & o->mask].t + SPAN + 1; }
static void leave(int s, i64 now) { while (due(s) == now) go(s, side[s].ring + (side[s].first++ & side[s].mask)); }
void join(i64 n, i64 *t, i64 *k, i64 *x, i64 m, i64 *u, i64 *l, i64 *y, Pairs *p) {
  pairs = p; p->deltas = p->comes = p->goes = 0; p->ins[0] = p->del[0] = 0;
  for (i64 i = 0, j = 0; i < n || j < m;) {
    i64 now = i < n && (j == m || t[i] < u[j]) ? t[i] : u[j], end = due(0) < due(1) ? due(0) : due(1);
    if (end < now) now = end;
    i64 comes = p->comes, goes = p->goes;
    leave(0, now); leave(1, now);
    for (; i < n && t[i] == now; i++) come(0, now, k[i], x[i]);
    for (; j < m && u[j] == now; j++) come(1, now, l[j], y[j]);
    net(comes, goes);
    if (p->comes > comes || p->goes > goes) {
      p->tau[p->deltas++] = now; p->ins[p->deltas] = p->comes; p->del[p->deltas] = p->goes; } } }
"""

PROGRAM = LOOPS + TABLE + AVERAGES + JOIN
