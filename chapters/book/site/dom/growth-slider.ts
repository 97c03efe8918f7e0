// growth-slider.ts: the lines of the program that are there at a step, and which of them are new.

export function growWith(): void {
  const slider = document.querySelector<HTMLInputElement>('#step');
  if (!slider) return;
  const names = [...document.querySelectorAll('#steps option')].map((each) => each.textContent);
  const onlyNew = document.querySelector<HTMLInputElement>('#only-new')!;
  const files = [...document.querySelectorAll<HTMLElement>('.grows')].map((section) => ({
    section,
    lines: [...section.querySelectorAll<HTMLElement>('code[data-since]')],
  }));
  const show = () => {
    const step = slider.valueAsNumber;
    let all = 0;
    let fresh = 0;
    for (const { section, lines } of files) {
      const before = { all, fresh };
      for (const line of lines) {
        const since = Number(line.dataset.since);
        const isThere = since <= step && step < Number(line.dataset.until ?? Infinity);
        const isNew = isThere && since === step;
        line.hidden = !isThere;
        line.classList.toggle('new', isNew);
        if (isThere) all++;
        if (isNew) fresh++;
      }
      section.hidden = all === before.all || (onlyNew.checked && fresh === before.fresh);
    }
    document.querySelector('#step-name')!.textContent =
      `${names[step]}: ${all} lines, ${fresh} of them new`;
    slider.setAttribute('aria-valuetext', `chapter ${names[step]}`);
  };
  slider.closest<HTMLElement>('.slider')!.hidden = false;
  for (const control of [slider, onlyNew]) control.addEventListener('input', show);
  show();
}
