// The stock page of the administration.

import { fetchJson, HttpError } from "./http";
import { showToast } from "./toast";

export interface Article {
  id: number;
  name: string;
  left: number;
}

export async function loadStock(): Promise<Article[]> {
  try {
    return await fetchJson("/stock");
  } catch (error) {
    if (error instanceof HttpError) showToast(`The stock cannot be shown: ${error.status}`);
    return [];
  }
}

// TODO(emil): ask before it is ordered twice
export function reorder(article: Article, count: number): Promise<void> {
  return fetchJson("/stock/orders", { method: "POST", body: JSON.stringify({ id: article.id, count }) });
}

export function fewest(articles: Article[]): Article | undefined {
  return [...articles].sort((a, b) => a.left - b.left)[0];
}
