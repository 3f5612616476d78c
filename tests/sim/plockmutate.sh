#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# Would the tests of application locks notice? As mutate.sh: one fault at a time
# in a copy of src/plock; schedules of plocksim (of pgroupsim for the files of
# plock_mode=group) until one fails, else the tests of tests/unit/plock. Exit 1
# if a fault goes unnoticed.
#
#   tests/sim/plockmutate.sh [RUNS] [NAME|NAME...]   default 2000 schedules, all
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
runs=${1:-2000}
only=${2:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
by_schedules=0 by_units=0 missed=0
cc=${CC:-gcc}
flags="-std=gnu17 -D_GNU_SOURCE -DUG_PLOCK_SMALL -O1 -g -fno-strict-aliasing"
wrap="-Wl,--wrap=malloc -Wl,--wrap=calloc -Wl,--wrap=realloc"

mkdir -p "$work/src" "$work/engine" "$work/sim" "$work/unit"
cp -r "$top"/src/{base,dlm,plock} "$work/src/"

compile() {		# compile SOURCE FOLDER: its object is named after it
	$cc $flags -I"$work/src" -c -o "$2/$(basename "$1" .c).o" "$1"
}

for source in "$work"/src/plock/*.c "$work"/src/base/{assert,crc,log}.c; do
	compile "$source" "$work/engine" || exit 2
done
for source in "$top"/tests/sim/p{lock,group}*.c "$top"/tests/sim/{nomem,queue,run}.c; do
	compile "$source" "$work/sim" || exit 2
done
for source in "$top"/tests/unit/plock/*.c; do
	compile "$source" "$work/unit" || exit 2
done

# link_mutant plock|pgroup: which of the two simulators
link_mutant() {
	local own="$work/sim/$1"

	$cc $flags -o "$work/mutant" "$work"/engine/*.o "$own"sim.o \
		"$own"world.o $([ "$1" = plock ] || echo "$own"truth.o) \
		"$work"/sim/{plockproc,plocktruth,nomem,queue,run}.o $wrap -lpthread -lz
}

# The name of the first unit test that fails; false: all pass.
failing_unit() {
	local name

	for name in test_range test_model test_member test_settings \
		test_pgroup; do
		$cc $flags -o "$work/$name" "$work/unit/$name.o" \
			"$work"/unit/{nomem,story}.o "$work"/engine/*.o $wrap -lcmocka \
			-lpthread -lz || exit 2
		(ulimit -t 60; exec "$work/$name" 20000) >"$work/output" 2>&1 &&
			continue
		echo "$name: $(grep -oE -m1 'FAILED  \] \w+|assertion.*' \
			"$work/output" | cut -c1-60)"
		return 0
	done
	return 1
}

# A fault is noticed only if the engine without it passes.
for which in plock pgroup; do
	link_mutant $which || exit 2
	if ! "$work/mutant" --runs "$runs"; then
		echo "the engine itself fails"
		exit 2
	fi
done
if failing_unit; then
	echo "the engine itself fails"
	exit 2
fi

# What is in $work/src/plock now: how is it noticed? One that makes the engine
# run in circles is noticed by the time it takes.
judge() {
	local name=$1 found

	found=$( (ulimit -t $((runs / 20 + 20)); exec "$work/mutant" \
		--runs "$runs") 2>&1)
	case $? in
	0)
		if found=$(failing_unit); then
			echo "$name: by $found"
			by_units=$((by_units + 1))
		else
			echo "$name: NOT NOTICED in $runs schedules"
			missed=$((missed + 1))
		fi
		;;
	*)
		echo "$name: in $(grep -aoE 'seed [0-9]+' <<<"$found" |
			tail -1): $(grep -a -m1 -E 'FAILED|assert' <<<"$found" |
			cut -c1-80)"
		by_schedules=$((by_schedules + 1))
		;;
	esac
}

# fault NAME FILE OLD NEW
fault() {
	local name=$1 file=$work/src/plock/$2 old=$3 new=$4 which=plock

	[ -z "$only" ] || [[ $name =~ ^($only)$ ]] || return 0
	[[ $2 != pgroup* ]] || which=pgroup
	cp "$file" "$work/saved"
	if ! OLD=$old NEW=$new python3 - "$file" <<-'PY'
		import os, sys
		path = sys.argv[1]
		text = open(path).read()
		old = os.environ["OLD"]
		if text.count(old) < 1:
		    sys.exit(1)
		open(path, "w").write(text.replace(old, os.environ["NEW"], 1))
	PY
	then
		echo "$name: THE TEXT IS NOT in $2"
		missed=$((missed + 1))
	elif ! compile "$file" "$work/engine" || ! link_mutant $which; then
		echo "$name: DOES NOT COMPILE"
		missed=$((missed + 1))
	else
		judge "$name"
	fi
	mv "$work/saved" "$file"
	compile "$file" "$work/engine"
}

# The range engine
fault neighbours-not-merged rangelock.c \
	'uint64_t from = start ? start - 1 : 0;' 'uint64_t from = start;'
fault conflict-beside-own rangelock.c \
	'return lock->owner != c->owner &&' 'return'
fault write-summary-wrong rangelock.c \
	'lock->mode == RANGE_WRITE ? lock->end : 0' 'lock->end'
fault waits-stay-after-unlock rangelock.c \
	'	waits_release(ranges, lock->hanging);
	pool_give' '	pool_give'
fault waits-stay-after-wait rangewait.c \
	'	waits_release(ranges, wait->hanging);' ''
fault reader-never-passes rangewait.c \
	'a->arrived_ns - wait->arrived_ns < RANGE_BATCH_NS' 'false'
fault holder-does-not-pass rangewait.c \
	'	if (wait->fair && !owner_at(ranges, wait->owner)->lock_count)' \
	'	if (wait->fair)'
fault second-thread-does-not-pass rangewait.c \
	'if (!had_none || !owner->wait_count)' 'if (1)'
fault promise-forgotten rangewait.c \
	'	ranges->locks.promised += LOCKS_OF_A_REQUEST;' ''
fault deadlock-of-two-waits rangesearch.c \
	'wait_next(ranges, id) ||' ''
fault deadlock-undetected rangesearch.c \
	's->found = true;' ''
fault flock-keeps-while-it-waits range.c \
	'		release_first(ranges, table, owner);' ''

# Clients
fault cancel-not-remembered client.c \
	'call->cancelled = status == -EINTR;' ''
fault note-forgotten client.c \
	'call->file->role == FILE_CLIENT &&
	    note(engine, call))' 'false)'
fault old-bounce-taken client.c \
	'|| call->sent_gen != msg->gen)' ')'
fault calls-in-wrong-order client.c \
	'cds_list_splice(&file->calls, &file->held);' \
	'while (!list_empty(&file->calls)) {
		call = cds_list_first_entry(&file->calls, struct call, list);
		cds_list_del(&call->list);
		cds_list_add_tail(&call->list, &file->held);
	}'
fault unlocks-not-doubted client.c \
	'			ug_assert(!note(engine, call));' '			;'
fault lowered-not-told client.c \
	'status && call->lowered ? -EIO : status' 'status'
fault own-parked-kept client.c \
	'	serve_unpark_own(engine, file);' ''

# The serialiser
fault gen-not-looked-at serve.c \
	'(file->role != FILE_CLIENT && msg->gen != file->gen)' 'false'
fault parked-overtaken serve.c \
	'if (serve_is_blocked(engine, file) || !list_empty(&file->parked))
		return park' 'if (serve_is_blocked(engine, file))
		return park'
fault closed-decides serve.c \
	'file->role != FILE_SERVES || file->closed ||' \
	'file->role != FILE_SERVES ||'
fault recalling-decides serve.c \
	'file->recalling ||' ''
fault waits-of-the-dead-kept serve.c \
	'		range_drop_waits(engine->ranges, &file->tables[t], node);' ';'
fault cancel-misses-parked serve.c \
	'		unpark(engine, file, parked);
		respond' '		respond'

# Homes
fault answers-before-the-barrier home.c \
	'if (!engine->settled)' 'if (0)'
fault freed-without-looking home.c \
	'		       file->home_gen == msg->gen;' '		       true;'
fault unknown-taken-for-nobody home.c \
	'	if (!engine->gone_count)
		return true;' '	if (1)
		return true;'
fault lost-file-open home.c \
	'file->closed = engine->gone_count > 0;' 'file->closed = false;'
fault claims-forgotten epoch.c \
	'	home_claim(engine, file);
}' '}'
fault registered-locks-lost home.c \
	'error = records_put(engine, file, msg);' 'error = 0;'
fault stale-record-trusted home.c \
	'	if (file->home_stale)
		file->home_node = 0;' ''

# Moves and loans
fault moves-with-waits move.c \
	'if (file->tables[t].wait_count ||' 'if ('
fault moves-from-a-third move.c \
	'return !third.found;' 'return true;'
fault done-during-a-move epoch.c \
	'engine->done_sent || engine->moving)' 'engine->done_sent)'
fault late-table-taken move.c \
	'	if (msg->epoch == engine->epoch) {
		file->taking_from = 0;' '	if (1) {
		file->taking_from = 0;'
fault moved-to-the-dead-open epoch.c \
	'		file->closed = engine->gone_count > 0;
		break;' '		break;'
fault half-a-table-kept move.c \
	'	file->taking_from = 0;
	file_drop_others(engine, file);' '	file->taking_from = 0;'
fault lent-with-calls-under-way client.c \
	'if (file->lent && list_empty(&file->calls) &&' 'if (file->lent &&'
fault return-adds-only lend.c \
	'if (msg->first) {' 'if (0) {'
fault lent-to-writers lend.c \
	'	    serve_has_writers(engine, file))' '	    false)'
fault lent-to-the-dead-open lend.c \
	'	file->closed |= engine->gone_count > 0;
	returned' '	returned'

# Limits
fault unlock-without-memory engine.c \
	'if (ranges_reserve(engine->ranges, 1) == -ENOMEM)' 'if (0)'
fault recalls-without-room file.c \
	' || plock_reserve(engine))' ')'
fault burst-without-end rate.c \
	'UG_MAX(engine->rate_ns, engine->now_ns)' 'engine->rate_ns'
fault calls-not-counted client.c \
	'	    !rate_may_send(engine, file, file->serialiser))' '	    0)'
fault in-line-forgotten rate.c \
	'		file_run(engine, file);' ''
fault line-overtaken rate.c \
	'list_empty(&engine->throttled) && take' 'take'
fault moves-from-home move.c \
	'if (engine->config.tuning.at_home)' 'if (0)'
fault lent-from-home lend.c \
	'engine->config.tuning.at_home ||' ''
fault given-away-from-home home.c \
	'(unknown || engine->config.tuning.at_home)' 'unknown'
fault forgets-all-the-time file.c \
	'if (engine->now_ns < engine->drop_ns)' 'if (0)'

# Epochs and probes
fault ghosts-released-early epoch.c \
	'		serve_forget_node(engine, file, change->old[i]);' \
	'		serve_forget_node(engine, file, change->old[i]);
		range_drop_node(engine->ranges, &file->tables[0],
				change->old[i]);'
fault ghosts-never-released epoch.c \
	'			range_drop_node(engine->ranges, &file->tables[t], node);' ';'
fault old-epoch-heard engine.c \
	'msg->epoch < engine->epoch &&
	    msg->type' 'false &&
	    msg->type'
fault deadlock-at-first-sight probe.c \
	'		confirm(engine, probe);' \
	'	{
		probe->status = AT_VICTIM;
		send_probe(engine, first->node, probe);
	}'
fault probes-not-sent client.c \
	'		probe_start(engine, call);' ''

# plock_mode=group: operations
fault group-op-of-another-time pgroupapply.c \
	'file->gen == msg->word' 'true'
fault group-op-of-an-owned-file pgroupapply.c \
	'file->state == PGROUP_SHARED && file->gen == msg->word' \
	'file->state != PGROUP_UNKNOWN'
fault group-op-lost pgroupapply.c \
	'		if (call)
			not_applied(engine, call);' '		if (call)
			gcall_end(engine, call, 0, NULL);'
fault group-cancel-any-mode pgroupapply.c \
	'req->mode != s->op->mode ||' ''
fault group-cancel-hits-another pgroupapply.c \
	'	if (call && call != other && call->state == GCALL_WAITING) {' \
	'	if (0) {'
fault group-record-in-the-way pgroupapply.c \
	'.wait = record->waiter,' '.wait = false,'

# Calls
fault group-requeued-at-the-end pgroupcall.c \
	'list)->id > call->id)' 'list)->id > UINT64_MAX - 1)'
fault group-cancelled-sent-again pgroupcall.c \
	'	if (call->cancelled) {
		gcall_end(engine, call, -EINTR, NULL);
		return;
	}
	leave' '	leave'
fault group-unsent-stays-unsent pgroupcall.c \
	'	if (!file->calls)
		return;' '	return;'
fault group-stale-overtaken pgroupcall.c \
	'glist_empty(&file->pending) || file->stale)' \
	'glist_empty(&file->pending))'
fault group-unlock-ends-all pgroupcall.c \
	'if (is_lock(call) || call->op.kind == PLOCK_GET)' \
	'if (call->op.kind == PLOCK_GET)'
fault group-granted-without-quorum pgroupcall.c \
	'if (!engine->stopped || !is_lock(call)) {' 'if (1) {'
fault group-close-passes-held-lock pgroupcall.c \
	'if (is_lock(other) && owner_is(other, call))' 'if (0)'
fault group-rate-never-tried-again pgroupcall.c \
	'if (glist_empty(&engine->outgoing) || !limit)' 'if (1)'

# Ownership
fault group-owner-keeps pgroupown.c \
	'		return give(engine, file);
	return 0;
}

static int given_by' '		return 0;
	return 0;
}

static int given_by'
fault group-waits-not-published pgroupown.c \
	'	for (size_t i = 0; i < count; i++)
		send_sync' '	for (size_t i = 0; i < file->table.lock_count; i++)
		send_sync'
fault group-second-claim-wins pgroupown.c \
	'	if (file->state == PGROUP_UNKNOWN) {' \
	'	if (file->state == PGROUP_OWNED && !gfile_is_ours(engine, file))
		file->owner = member->inc;
	if (file->state == PGROUP_UNKNOWN) {'
fault group-claim-said-once pgroupown.c \
	'	file->gen = engine->last_gen;
	file->claimed = false;' '	file->gen = engine->last_gen;'
fault group-drop-with-locks pgroupown.c \
	'file->state != PGROUP_SHARED || file->table.lock_count ||' \
	'file->state != PGROUP_SHARED ||'
fault group-one-gen pgroupown.c \
	'	engine->last_gen++;
	share' '	engine->last_gen |= 1;
	share'
fault group-owned-by-the-dead-forever pgroupown.c \
	'	if (file->state == PGROUP_OWNED && file->owner == inc)
		share' '	if (0)
		share'

# Members
fault group-locks-of-the-dead-dropped pgroupmember.c \
	'	range_drop_waits(engine->ranges, &file->table, inc);' \
	'	range_drop_node(engine->ranges, &file->table, inc);'
fault group-waits-of-the-dead-kept pgroupmember.c \
	'	range_drop_waits(engine->ranges, &file->table, inc);' ''
fault group-locks-of-the-dead-kept pgroupmember.c \
	'	range_drop_node(engine->ranges, &file->table, inc);' ''
fault group-release-not-said-again pgroupmember.c \
	'	if (member->heard)' '	if (0)'
fault group-old-start-taken pgroupmember.c \
	'if (!member->counted && msg->word != engine->first_crc)' 'if (0)'
fault group-starts-not-counted pgroupmember.c \
	'engine->members[i].due++' 'engine->members[i].due = 1'
fault group-begins-beside-the-dead pgroupmember.c \
	'engine->phase != GPHASE_FIRST || !engine->alone ||' \
	'engine->phase != GPHASE_FIRST ||'
fault group-old-begin-taken pgroupmember.c \
	'engine->phase == GPHASE_FIRST && member == teller(engine) &&
	    msg->change == member->change' 'engine->phase <= GPHASE_FIRST'
fault group-tables-kept-over-a-change pgroupmember.c \
	'		gfiles_each(engine, forget_table, 0);' ''

# Tables for newcomers
fault group-newcomer-keeps-nothing pgrouptransfer.c \
	'	cds_list_add_tail(&saved->list, &engine->saved);
	engine->saved_count++;' '	free(saved);'
fault group-half-published-not-told pgrouptransfer.c \
	'		return file->synced;' '		return 0;'
fault group-private-told pgrouptransfer.c \
	'if (file->state == PGROUP_UNKNOWN || gfile_is_ours(engine, file))' \
	'if (file->state == PGROUP_UNKNOWN)'
fault group-gone-not-told pgrouptransfer.c \
	'	for (unsigned i = 0; i < engine->gone_count; i++)
		t->gone[t->gone_count++]' '	for (unsigned i = 0; i < 0; i++)
		t->gone[t->gone_count++]'
fault group-waits-told-in-any-order pgroupfile.c \
	'	if (g.count > locks)' '	if (0)'
fault group-last-gen-not-told pgrouptransfer.c \
	'	engine->last_gen = (uint32_t)msg->inc;' ''
echo "noticed by schedules: $by_schedules, by units: $by_units," \
	"not noticed: $missed"
[ $missed = 0 ]
