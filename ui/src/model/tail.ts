// Following the end of a list that grows, without ever moving a reader who scrolled up.

export interface Tail {
  readonly following: boolean;
  readonly unseen: number;
}

export const AT_END: Tail = { following: true, unseen: 0 };

export function grown(tail: Tail, by: number): Tail {
  return tail.following || by <= 0 ? tail : { ...tail, unseen: tail.unseen + by };
}

export function scrolled(tail: Tail, atEnd: boolean): Tail {
  if (atEnd) return tail.following && tail.unseen === 0 ? tail : AT_END;
  return tail.following ? { ...tail, following: false } : tail;
}
