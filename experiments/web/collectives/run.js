// Runs the schedules of all ranks, which the program wrote into the page, on their numbers. A step
// of the page is one beat: every rank goes on until it needs a message that was sent in this very
// beat, or waits for one that has not been sent.
// SPDX-License-Identifier: Apache-2.0
const Run = (() => {
  const kWhat = ["kind", "peer", "send", "memory", "begin", "end", "fromMemory", "fromBegin", "fromEnd"];
  const named = (step) => Object.fromEntries(kWhat.map((name, i) => [name, step[i]]));

  // Terms as the program writes them: the part with the smaller first rank first.
  const firstOf = (term) => parseInt(term.replace(/\(/g, ""), 10);
  const sumOf = (a, b) => (firstOf(a) < firstOf(b) ? `(${a}+${b})` : `(${b}+${a})`);

  function begin(world, gradients, elements) {
    const ranks = world.schedules.map((schedule, rank) => ({
      steps: schedule.map(named), at: 0, sent: [],
      data: { values: Float32Array.from(gradients[rank]), terms: Array(elements).fill(String(rank)) },
      scratch: { values: new Float32Array(elements), terms: Array(elements).fill("") },
    }));
    return { ranks, posts: new Map(), beat: 0 };
  }
  const post = (run, from, to) => {
    const key = `${from} ${to}`;
    if (!run.posts.has(key)) run.posts.set(key, []);
    return run.posts.get(key);
  };

  function put(target, i, value, term, adds) {
    target.values[i] = adds ? Math.fround(target.values[i] + value) : value;
    target.terms[i] = adds ? sumOf(target.terms[i], term) : term;
  }

  // Does the rank's next step and returns null, or the rank that it must wait for.
  function advance(run, rank, seen) {
    const own = run.ranks[rank], step = own.steps[own.at], target = own[step.memory];
    if (step.kind === "send") {
      const message = { from: rank, to: step.peer, begin: step.begin, sent: run.beat, taken: -1,
        values: target.values.slice(step.begin, step.end), terms: target.terms.slice(step.begin, step.end) };
      post(run, rank, step.peer).push(message);
      own.sent[own.at] = message;
    } else if (step.kind === "wait") {
      const message = own.sent[step.send];
      if (message.taken < 0 || message.taken === run.beat) return step.peer;
    } else if (step.kind === "receive" || step.kind === "receive-add") {
      const message = post(run, step.peer, rank).find((each) => each.taken < 0);
      if (!message || message.sent === run.beat) return step.peer;
      message.taken = run.beat;
      const adds = step.kind === "receive-add";
      message.values.forEach((value, i) => put(target, step.begin + i, value, message.terms[i], adds));
      seen.messages.push({ from: step.peer, to: rank, adds, memory: step.memory, begin: message.begin, end: message.begin + message.values.length });
      if (step.memory === "data") seen.changed.push({ rank, begin: step.begin, end: step.end });
    } else {
      const source = own[step.fromMemory];
      for (let i = 0; i < step.end - step.begin; ++i)
        put(target, step.begin + i, source.values[step.fromBegin + i], source.terms[step.fromBegin + i], step.kind === "add");
      if (step.memory === "data") seen.changed.push({ rank, begin: step.begin, end: step.end });
    }
    own.at += 1;
    return null;
  }

  // A rank that only waits until others have taken what it sent has its result.
  const isDone = ({ steps, at }) => steps.slice(at).every(({ kind }) => kind === "wait");
  const snapshot = (run, seen) => ({ ...seen,
    ranks: run.ranks.map((own) => ({ done: isDone(own), values: own.data.values.slice(), terms: own.data.terms.slice() })) });

  // The frames: the beginning, then what the ranks hold after each beat in which something arrived.
  // In a beat without a message, ranks only see that theirs were taken: it has no frame.
  function frames(world, gradients, elements) {
    const run = begin(world, gradients, elements), list = [];
    for (; run.beat < 1000; ++run.beat) {
      const seen = { messages: [], changed: [], waits: [] };
      run.ranks.forEach((own, rank) => {
        let stop = null;
        while (stop === null && own.at < own.steps.length) stop = advance(run, rank, seen);
        if (stop !== null && !isDone(own)) seen.waits.push({ rank, peer: stop });
      });
      if (run.beat === 0 || seen.messages.length > 0) list.push(snapshot(run, seen));
      if (run.ranks.every(({ steps, at }) => at === steps.length)) return list;
    }
    throw new Error("a rank waits for ever");
  }
  return { frames };
})();
